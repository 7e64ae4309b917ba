use super::*;

/// Proves AP-6, AP-9.
#[test]
fn a_value_behind_its_name_is_hidden_and_nothing_else_of_the_text() {
    for (text, shown) in [
        ("rm -rf /srv/data", "rm -rf /srv/data"),
        ("mysql --password hunter2 -e x", "mysql --password [hidden] -e x"),
        ("mysql --password=hunter2 -e x", "mysql --password=[hidden] -e x"),
        (
            "mysql --password='hunter2' -e x",
            "mysql --password='[hidden]' -e x",
        ),
        ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[hidden] psql"),
        ("DB_PASS=hunter2; psql", "DB_PASS=[hidden]; psql"),
        ("(API_KEY=abc) && true", "(API_KEY=[hidden]) && true"),
        (
            "curl -H \"Authorization: Bearer abc.def/g\" x",
            "curl -H \"Authorization: Bearer [hidden]\" x",
        ),
        ("curl -H 'x-api-key: abc' x", "curl -H 'x-api-key: [hidden]' x"),
        (
            "curl https://h/p?token=abc&x=1",
            "curl https://h/p?token=[hidden]&x=1",
        ),
        ("git clone https://u:pw@h/r", "git clone https://u:[hidden]@h/r"),
        (
            r#"curl -d '{"password":"hunter2","n":1}' x"#,
            r#"curl -d '{"password":"[hidden]","n":1}' x"#,
        ),
        (
            r#"sh -c "curl -d '{\"password\":\"hunter2\"}' x""#,
            r#"sh -c "curl -d '{\"password\":\"[hidden]\"}' x""#,
        ),
        // What names a value, or says nothing, is shown.
        ("PGPASSWORD=$PASS psql", "PGPASSWORD=$PASS psql"),
        ("mysql --password \"${PW}\"", "mysql --password \"${PW}\""),
        ("TOKEN=$(cat /run/t) x", "TOKEN=$(cat /run/t) x"),
        (
            "curl -H \"Authorization: Bearer $TOKEN\"",
            "curl -H \"Authorization: Bearer $TOKEN\"",
        ),
        (
            "docker login --password-stdin h",
            "docker login --password-stdin h",
        ),
        ("vault --token-file /run/t x", "vault --token-file /run/t x"),
        ("mysql --password -e x", "mysql --password -e x"),
        ("kubectl delete secret prod-db", "kubectl delete secret prod-db"),
        ("cat secrets/list.txt", "cat secrets/list.txt"),
        (
            "fn next(token: String, n: u8) {}",
            "fn next(token: String, n: u8) {}",
        ),
        ("if token == other { }", "if token == other { }"),
        ("use token::Kind;", "use token::Kind;"),
        ("docker run -u 1000:1000 x", "docker run -u 1000:1000 x"),
        ("mkdir -pv a && ssh -p22 h", "mkdir -pv a && ssh -p22 h"),
        (
            r#"curl -d '{"max_tokens":100,"prompt":"x"}' h"#,
            r#"curl -d '{"max_tokens":100,"prompt":"x"}' h"#,
        ),
        // Names with which programs are named that run.
        ("GIT_ASKPASS=evil git pull", "GIT_ASKPASS=evil git pull"),
        (
            "git -c credential.helper=evil pull",
            "git -c credential.helper=evil pull",
        ),
        ("curl --cookie-jar out h", "curl --cookie-jar out h"),
        (
            "git show 4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d",
            "git show 4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d",
        ),
        (
            "caf\u{e9} \u{1f512} --password x",
            "caf\u{e9} \u{1f512} --password [hidden]",
        ),
    ] {
        assert_eq!(of_text(text).as_deref(), Ok(shown), "{text}");
    }
}

/// An agent names what it likes: what it hides would be what runs.
///
/// Proves AP-9.
#[test]
fn what_would_hide_more_than_a_value_is_not_shown_at_all() {
    for text in [
        "password=;curl h|sh",
        "password=a;curl h|sh",
        "password=a|sh",
        "password=a&&curl h",
        "PASSWORD=/srv/run.sh sh",
        "--password 'a;curl h|sh'",
        "--password \"correct horse\"",
        "--token /srv/production",
        "rm -rf -- --password production",
        // A variable that is used, by whatever.
        "TOKEN=rm; $TOKEN -rf /srv",
        "TOKEN=rm; ${TOKEN} -rf /srv",
        "TOKEN=rm sh -c '$TOKEN -rf /srv'",
        "TOKEN=rm printenv TOKEN | sh",
        "TOKEN=\"rm\"; $TOKEN -rf /srv",
        "a&token=rm&$token -rf /",
        // What stands for a value already cannot be told from one.
        "rm -rf [hidden]",
        "docker run my-secret:evil",
        "sh -c \"token: a b\"",
        "curl -H \"Cookie: a=b; c=d\"",
    ] {
        assert_eq!(of_text(text), Err(Unshowable), "{text}");
    }
}

/// Proves AP-6, AP-9.
#[test]
fn a_credential_where_nothing_says_that_it_is_a_value_is_not_shown() {
    for text in [
        "sh sk-ant-api03-0123456789abcdef",
        "git clone https://ghp_0123456789abcdefghijABCD@h/r",
        "rm -rf AKIA0123456789ABCDEF",
        "echo eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLXRoaXM",
        "echo -----BEGIN RSA PRIVATE KEY----- abc",
        "echo qW7eRt5yU1iOp9aSd3fG",
        "aws configure set aws_secret_access_key hunter2",
        "x wJalrXUtnFEMI/K7MDENG/bPxRfiCY5EXAMPLEK2",
        "X=\"Bearer abc\" curl h",
        "curl -H X:Basic dXNlcjpwYXNz",
        "curl -H Authorization: Bearer abc x",
        "curl -u user:pass h",
        "curl -uuser:pass h",
        "curl --user=user:pass h",
        "mysql -phunter2 -e x",
        "/usr/bin/mysqldump -phunter2",
        "sshpass -p hunter2 ssh h",
        "docker login -p hunter2 h",
        "docker login -u a -phunter2 h",
        "redis-cli -a hunter2",
        "https://u:p$w@h/r",
        "password: hunter2\n",
        "password = hunter2",
        "PASSWORD='$ecret'",
        "PASSWORD=a$b",
    ] {
        assert_eq!(of_text(text), Err(Unshowable), "{text}");
    }
}

/// Proves AP-9.
#[test]
fn a_member_of_a_credentials_name_is_hidden_where_it_is_one_value() {
    for (text, shown) in [
        ("hunter2", "[hidden]"),
        ("Bearer abc/d+e=", "Bearer [hidden]"),
        ("postgres://u:p@h/d", "[hidden]"),
        ("${TOKEN}", "${TOKEN}"),
        ("", ""),
    ] {
        assert_eq!(of_member(text).as_deref(), Ok(shown), "{text}");
    }
    for text in [
        "a b",
        "rm;ls",
        "$(x)",
        "a\nb",
        "$ecret",
        "caf\u{e9}",
        "[hidden]",
        "a|b",
        "'a'",
    ] {
        assert_eq!(of_member(text), Err(Unshowable), "{text}");
    }
    let names = [
        "password",
        "dbPassword",
        "X-Api-Key",
        "aws_secret_access_key",
        "TOKEN",
        "npm_auth",
        "db_pwd",
    ];
    assert!(names.iter().all(|name| is_secret_name(name)));
    let others = [
        "PWD",
        "author",
        "tokenizer",
        "password_file",
        "secretName",
        "secret-id",
        "tokenAmount",
        "credentialVersion",
        "key",
        "compass",
        "path",
    ];
    let too_many: Vec<&&str> = others.iter().filter(|name| is_secret_name(name)).collect();
    assert_eq!(
        too_many,
        [&"compass"],
        "a name too many hides a value that is shown as hidden"
    );
}

proptest::proptest! {
    /// Whatever a text is: what is hidden of it are words of plain signs, and the rest is shown as it is.
    #[test]
    fn what_is_shown_is_the_text_but_for_values(
        text in "([a-zA-Z0-9 =:;|&$'\"/@.?\\\\-]|password|TOKEN|--token|Bearer |https://|\u{e9}){0,24}",
    ) {
        if let (Ok(shown), Ok(values)) = (of_text(&text), values(&text)) {
            let mut rest = shown.as_str();
            let mut from = 0;
            for value in values {
                proptest::prop_assert!(value.start >= from && value.start < value.end, "{}", text);
                proptest::prop_assert!(text[value.clone()].bytes().all(is_wide), "{}", text);
                let before = format!("{}{HIDDEN}", &text[from..value.start]);
                proptest::prop_assert!(rest.starts_with(&before), "{} as {}", text, shown);
                rest = &rest[before.len()..];
                from = value.end;
            }
            proptest::prop_assert_eq!(rest, &text[from..]);
        }
    }
}
