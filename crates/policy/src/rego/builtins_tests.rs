//! What the built-ins say, beside what OPA says, and where they end.

use super::*;
use regorus::admitted::{Size, admitted};
use serde_json::json;

const START: &str = "package forge.content\nimport rego.v1\ndefault match := {\"matched\": false}\n";

fn says(condition: &str, input: &serde_json::Value) -> Result<Answer, Failure> {
    let source = format!("{START}match := {{\"matched\": true}} if {{ {condition} }}");
    let module = Module::compile(Family::Content, &source).unwrap_or_else(|e| panic!("{condition}: {e:?}"));
    // Without the clock, so that what ends it is the bound.
    let limit = Duration::from_hours(1);
    module.ask_within(limit, &input::value(input), &[]).answer
}

fn is_matched(said: &Result<Answer, Failure>) -> bool {
    said.as_ref().is_ok_and(|answer| answer.matched)
}

fn document() -> serde_json::Value {
    json!({
        "o": {"a": [1, "x", {"b": null}], "c": true}, "n": 5, "neg": -7, "f": 1.5, "s": "héllo\n\"q\"\t", "b": true,
        "z": null, "arr": ["b", "a"], "e": "", "tiny": 0.00001, "large": 1.5e22, "m": 1_234_567.25
    })
}

/// Expressions, and what OPA says of them with the document above; where it writes Go's `int64`, OPA 1.2 writes `int`.
const VALUES: [(&str, &str); 192] = [
    (r#"semver.is_valid("1.2.3-a.b+c")"#, "true"),
    (r#"semver.is_valid("1.2")"#, "false"),
    ("semver.is_valid(input.n)", "false"),
    (r#"trace("a")"#, "true"),
    (
        r#"regex.find_all_string_submatch_n("a(x*)b(y|z)?c", "-axxxbyc-abzc-abc", -1)"#,
        r#"[["axxxbyc", "xxx", "y"], ["abzc", "", "z"], ["abc", "", ""]]"#,
    ),
    (
        r#"regex.find_all_string_submatch_n("a(x*)b(y|z)?c", "-axxxbyc-abzc-", 1)"#,
        r#"[["axxxbyc", "xxx", "y"]]"#,
    ),
    (r#"regex.find_all_string_submatch_n("a", "aaa", 0)"#, "[]"),
    (
        r#"regex.find_all_string_submatch_n("a*", "baac", -1)"#,
        r#"[[""], ["aa"], [""]]"#,
    ),
    (
        r#"regex.find_all_string_submatch_n("((h).)l+", input.s, 5)"#,
        r#"[["héll", "hé", "h"]]"#,
    ),
    (r#"base64.encode("")"#, r#""""#),
    (r#"base64.encode("a")"#, r#""YQ==""#),
    (r#"base64.encode("ab")"#, r#""YWI=""#),
    ("base64.encode(input.s)", r#""aMOpbGxvCiJxIgk=""#),
    (r#"base64.encode("ÿ>?ÿ>?")"#, r#""w78+P8O/Pj8=""#),
    ("union({{1, 2}, {2, 3}, set()})", "{1, 2, 3}"),
    ("union(set())", "set()"),
    (
        "json.marshal(input.o)",
        r#""{\"a\":[1,\"x\",{\"b\":null}],\"c\":true}""#,
    ),
    ("json.marshal(input.s)", r#""\"héllo\\n\\\"q\\\"\\t\"""#),
    (
        r#"json.marshal({"<a>&": "\u2028\u0001\b\f\u007f", "Z": {3, 1, "x"}, "a": [true, false, -5, {}, [], set()]})"#,
        r#""{\"\\u003ca\\u003e\\u0026\":\"\\u2028\\u0001\\b\\f\u007f\",\"Z\":[1,3,\"x\"],\"a\":[true,false,-5,{},[],[]]}""#,
    ),
    (
        "json.marshal([9223372036854775807, -5])",
        r#""[9223372036854775807,-5]""#,
    ),
    (
        r#"json.marshal({{"k": 1}, {2}, [3]})"#,
        r#""[[3],{\"k\":1},[2]]""#,
    ),
    (r#"sprintf("%s|%v|%d", ["a", "b", 3])"#, r#""a|b|3""#),
    (r#"sprintf("%s", [5])"#, r#""%!s(int=5)""#),
    (r#"sprintf("%d", ["x"])"#, r#""%!d(string=x)""#),
    (r#"sprintf("%d %d", [1])"#, r#""1 %!d(MISSING)""#),
    (
        r#"sprintf("%d", [1, "x", 2.5])"#,
        r#""1%!(EXTRA string=x, float64=2.5)""#,
    ),
    (r#"sprintf("%", [1])"#, r#""%!(NOVERB)%!(EXTRA int=1)""#),
    (r#"sprintf("100%%", [])"#, r#""100%""#),
    (
        r#"sprintf("%5d|%-5d|%05d|%+d|% d|%x|%X|%o|%O|%b|%c", [42, 42, 42, 42, 42, 255, 255, 8, 8, 5, 97])"#,
        r#""   42|42   |00042|+42| 42|ff|FF|10|0o10|101|a""#,
    ),
    (
        r#"sprintf("%5s|%-5s|%.2s|%q|%x|%X", ["ab", "ab", "héllo", input.s, "hi", "hi"])"#,
        r#""   ab|ab   |hé|\"héllo\\n\\\"q\\\"\\t\"|6869|6869""#,
    ),
    (
        r#"sprintf("%v %v %v", [input.o, input.b, input.z])"#,
        r#""{\"a\": [1, \"x\", {\"b\": null}], \"c\": true} true null""#,
    ),
    (r#"sprintf("%s", [{1, "a", input.z}])"#, r#""{null, 1, \"a\"}""#),
    (r#"sprintf("%s %v", [set(), {}])"#, r#""set() {}""#),
    (
        r#"sprintf("%v|%d|%s|%x", [123456789012345678901234567890, 123456789012345678901234567890, 123456789012345678901234567890, 123456789012345678901234567890])"#,
        r#""123456789012345678901234567890|123456789012345678901234567890|123456789012345678901234567890|18ee90ff6c373e0ee4e3f0ad2""#,
    ),
    (
        r#"sprintf("%v|%f|%.2f|%e|%g|%8.3f|%-8.1f|%+.1f|%E|%G", [input.f, input.f, input.f, input.f, input.f, input.f, input.f, input.f, input.f, input.f])"#,
        r#""1.5|1.500000|1.50|1.500000e+00|1.5|   1.500|1.5     |+1.5|1.500000E+00|1.5""#,
    ),
    (
        r#"sprintf("%v|%g|%.3g|%v|%v", [input.tiny, input.m, input.m, input.m, input.large])"#,
        r#""1e-05|1.23456725e+06|1.23e+06|1.23456725e+06|1.5e+22""#,
    ),
    (r#"sprintf("%d", [input.f])"#, r#""%!d(float64=1.5)""#),
    (r#"sprintf("%s", [input.f])"#, r#""%!s(float64=1.5)""#),
    (r#"sprintf("%t", [input.b])"#, r#""%!t(string=true)""#),
    (
        r#"sprintf("%T %T %T", [1, "a", input.f])"#,
        r#""int string float64""#,
    ),
    (r#"sprintf("%z", [1])"#, r#""%!z(int=1)""#),
    (r#"sprintf("%5z", [1])"#, r#""%!z(int=    1)""#),
    (
        r#"sprintf("%.3d|%8.3d|%08d|%-08d", [5, 5, input.neg, input.neg])"#,
        r#""005|     005|-0000007|-7      ""#,
    ),
    (
        r#"sprintf("%010.2f|%+010.2f", [input.f, input.f])"#,
        r#""0000001.50|+000001.50""#,
    ),
    (r#"sprintf("%s", ["a", "b"])"#, r#""a%!(EXTRA string=b)""#),
    (r#"sprintf("%!", ["a"])"#, r#""%!!(string=a)""#),
    (r#"sprintf("%é", ["a"])"#, r#""%!é(string=a)""#),
    (r#"sprintf("%v", [input.arr])"#, r#""[\"b\", \"a\"]""#),
    (
        r#"sprintf("%q", [input.o])"#,
        r#""\"{\\\"a\\\": [1, \\\"x\\\", {\\\"b\\\": null}], \\\"c\\\": true}\"""#,
    ),
    (r#"sprintf("%.0f %.0f %.0f", [0.5, 1.5, 2.5])"#, r#""0 2 2""#),
    (
        r#"sprintf("%g %g %g", [100000.5, 1234567.5, 0.0001])"#,
        r#""100000.5 1.2345675e+06 0.0001""#,
    ),
    (r#"sprintf("%6.2f%%", [99.5])"#, r#"" 99.50%""#),
    (r#"sprintf("%.3v", ["abcdef"])"#, r#""abc""#),
    (
        r#"sprintf("%v", [{"a": {"b": [1.5, "x"]}}])"#,
        r#""{\"a\": {\"b\": [1.5, \"x\"]}}""#,
    ),
    (r#"sprintf("%s", [input.e])"#, r#""""#),
    (r#"sprintf("no verbs", [])"#, r#""no verbs""#),
    (r#"concat(",", ["a", "b", "c"])"#, r#""a,b,c""#),
    (r#"concat("/", {"b", "a"})"#, r#""a/b""#),
    (r#"concat(",", [])"#, r#""""#),
    (r#"replace("abab", "a", "x")"#, r#""xbxb""#),
    (r#"replace("ab", "", "-")"#, r#""-a-b-""#),
    (r#"replace("", "", "-")"#, r#""-""#),
    (r#"replace("aaa", "aa", "b")"#, r#""ba""#),
    (r#"replace("abc", "x", "y")"#, r#""abc""#),
    (
        r#"json.unmarshal("{\"a\": [1, 2.5, null, true, \"\\u00e9\\n\"]}")"#,
        r#"{"a": [1, 2.5, null, true, "é\n"]}"#,
    ),
    (r#"json.unmarshal(" [] ")"#, "[]"),
    (r#"json.unmarshal("{\"a\":1,\"a\":2}")"#, r#"{"a": 2}"#),
    (r#"json.unmarshal("\"\\ud83d\\ude00\"")"#, r#""😀""#),
    (r#"json.unmarshal("\"\\ud83d\"")"#, r#""�""#),
    (r#"json.unmarshal("\"\\ud83d\\u0041\"")"#, r#""�A""#),
    (r#"json.unmarshal("-0")"#, "0"),
    (
        r#"json.unmarshal("{\"$serde_json::private::Number\": \"1\"}")"#,
        r#"{"$serde_json::private::Number": "1"}"#,
    ),
    (
        r#"json.unmarshal("123456789012345678901234567890")"#,
        "123456789012345678901234567890",
    ),
    (
        r#"json.unmarshal("{\"a\" : 1 , \"b\":{}}")"#,
        r#"{"a": 1, "b": {}}"#,
    ),
    (r#"json.is_valid("{}")"#, "true"),
    (r#"json.is_valid("{")"#, "false"),
    ("json.is_valid(input.n)", "false"),
    (r#"json.is_valid("\"\\ud800\"")"#, "true"),
    (r#"json.is_valid("")"#, "false"),
    (r#"json.is_valid("[1,2,]")"#, "false"),
    (r#"json.is_valid("1e5")"#, "true"),
    (r#"json.is_valid("\u00a0[]")"#, "false"),
    (r#"to_number("5")"#, "5"),
    (r#"to_number("-5.25")"#, "-5.25"),
    ("to_number(true)", "1"),
    ("to_number(false)", "0"),
    ("to_number(null)", "0"),
    ("to_number(input.f)", "1.5"),
    (
        r#"to_number("123456789012345678901234567890")"#,
        "123456789012345678901234567890",
    ),
    ("array.concat([1, 2], [3])", "[1, 2, 3]"),
    ("array.concat([], [])", "[]"),
    (
        r#"object.union_n([{"a": {"x": 1}}, {"a": {"y": 2}}, {"b": 3}])"#,
        r#"{"a": {"x": 1, "y": 2}, "b": 3}"#,
    ),
    (
        r#"object.union_n([{"a": {"x": 1}}, {"a": 7}, {"a": {"y": 2}}])"#,
        r#"{"a": {"y": 2}}"#,
    ),
    ("object.union_n([])", "{}"),
    (r#"base64.decode("aGVsbG8=")"#, r#""hello""#),
    (r#"base64.decode("aGVs\nbG8=")"#, r#""hello""#),
    (r#"base64.decode("")"#, r#""""#),
    (r#"base64.decode("YQ==")"#, r#""a""#),
    (r#"base64.decode("YR==")"#, r#""a""#),
    (r#"semver.compare("1.2.3", "1.2.4")"#, "-1"),
    (r#"semver.compare("1.10.0", "1.9.0")"#, "1"),
    (r#"semver.compare("1.0.0-alpha", "1.0.0")"#, "-1"),
    (r#"semver.compare("1.0.0", "1.0.0-rc.1")"#, "1"),
    (r#"semver.compare("1.0.0-alpha.1", "1.0.0-alpha.beta")"#, "-1"),
    (r#"semver.compare("1.0.0-alpha.10", "1.0.0-alpha.9")"#, "1"),
    (r#"semver.compare("1.0.0-alpha", "1.0.0-alpha.1")"#, "-1"),
    (r#"semver.compare("1.0.0+a", "1.0.0+b")"#, "0"),
    (r#"semver.compare("01.2.3", "1.2.3")"#, "0"),
    (r#"semver.compare("1.0.0-", "1.0.0")"#, "0"),
    (r#"semver.compare("1.0.0-a-b", "1.0.0-a.b")"#, "1"),
    (r#"semver.compare("1.0.0-1", "1.0.0-a")"#, "-1"),
    (r#"semver.compare("1.0.0-99999999999999999999", "1.0.0-1")"#, "1"),
    (r#"semver.compare("1.0.0+x-y", "1.0.0")"#, "0"),
    (r#"urlquery.decode("a+b%20c%2Fd")"#, r#""a b c/d""#),
    (r#"urlquery.decode("%e2%82%ac")"#, r#""€""#),
    (r#"urlquery.decode("a=b&c=d")"#, r#""a=b&c=d""#),
    (r#"urlquery.decode("")"#, r#""""#),
    (r#"units.parse_bytes("10")"#, "10"),
    (r#"units.parse_bytes("10KB")"#, "10000"),
    (r#"units.parse_bytes("10KiB")"#, "10240"),
    (r#"units.parse_bytes("1.5mb")"#, "1500000"),
    (r#"units.parse_bytes("0.3k")"#, "300"),
    (r#"units.parse_bytes("0.1kb")"#, "100"),
    (r#"units.parse_bytes("1.1EiB")"#, "1268213655067531673"),
    (r#"units.parse_bytes("7.7eb")"#, "7700000000000000000"),
    (r#"units.parse_bytes("0.7gi")"#, "751619276"),
    (
        r#"units.parse_bytes("12345678901234567890123")"#,
        "12345678901234567889920",
    ),
    (
        r#"units.parse_bytes("9007199254740993.3k")"#,
        "9007199254740993300",
    ),
    (r#"units.parse_bytes("3.3333333333333333333t")"#, "3333333333333"),
    (r#"units.parse_bytes("\"10mb\"")"#, "10000000"),
    (r#"units.parse_bytes(".5kb")"#, "500"),
    (r#"units.parse_bytes("5.kb")"#, "5000"),
    (r#"units.parse_bytes("1e")"#, "1000000000000000000"),
    (r#"units.parse_bytes("0.9")"#, "0"),
    ("numbers.range(1, 5)", "[1, 2, 3, 4, 5]"),
    ("numbers.range(5, 1)", "[5, 4, 3, 2, 1]"),
    ("numbers.range(-1, 1)", "[-1, 0, 1]"),
    ("numbers.range(3, 3)", "[3]"),
    (
        "numbers.range(123456789012345678901234567890, 123456789012345678901234567892)",
        "[123456789012345678901234567890, 123456789012345678901234567891, 123456789012345678901234567892]",
    ),
    (r#"net.cidr_contains("10.0.0.0/8", "10.1.2.3")"#, "true"),
    (r#"net.cidr_contains("10.0.0.0/8", "11.1.2.3")"#, "false"),
    (r#"net.cidr_contains("10.1.2.3/8", "10.200.0.0/16")"#, "true"),
    (r#"net.cidr_contains("10.0.0.0/16", "10.0.0.0/8")"#, "false"),
    (r#"net.cidr_contains("10.0.0.0/8", "::ffff:10.0.0.1")"#, "true"),
    (r#"net.cidr_contains("::ffff:10.0.0.0/104", "10.0.0.1")"#, "true"),
    (r#"net.cidr_contains("::ffff:10.0.0.0/104", "11.0.0.1")"#, "false"),
    (r#"net.cidr_contains("::ffff:0.0.0.0/96", "200.0.0.1")"#, "true"),
    (r#"net.cidr_contains("::ffff:0.0.0.0/90", "200.0.0.1")"#, "false"),
    (r#"net.cidr_contains("::/0", "10.0.0.1")"#, "false"),
    (r#"net.cidr_contains("::/0", "::1")"#, "true"),
    (r#"net.cidr_contains("0.0.0.0/0", "255.255.255.255")"#, "true"),
    (r#"net.cidr_contains("0.0.0.0/0", "::1")"#, "false"),
    (r#"net.cidr_contains("fd00::/16", "fd00::/17")"#, "true"),
    (r#"net.cidr_contains("fd00::/17", "fd00::/16")"#, "false"),
    (r#"net.cidr_contains("10.0.0.0/08", "10.0.0.1")"#, "true"),
    (r#"net.cidr_contains("10.0.0.0/8", "10.0.0.0/0")"#, "false"),
    (r#"net.cidr_contains("10.0.0.0/8", "10.0.0.0/32")"#, "true"),
    (
        r#"net.cidr_contains("2001:db8::/32", "2001:db8::1.2.3.4")"#,
        "true",
    ),
    (
        r#"net.cidr_contains("::ffff:10.0.0.0/104", "::ffff:10.1.0.0/112")"#,
        "true",
    ),
    (r#"time.parse_rfc3339_ns("1970-01-01T00:00:00Z")"#, "0"),
    (
        r#"time.parse_rfc3339_ns("2024-02-29T12:34:56.789Z")"#,
        "1709210096789000000",
    ),
    (
        r#"time.parse_rfc3339_ns("2024-12-31T23:59:59.123456789123+05:30")"#,
        "1735669799123456789",
    ),
    (
        r#"time.parse_rfc3339_ns("2024-12-31T23:59:59-08:00")"#,
        "1735718399000000000",
    ),
    (r#"time.parse_rfc3339_ns("1969-12-31T23:59:59.5Z")"#, "-500000000"),
    (
        r#"time.parse_rfc3339_ns("1677-09-21T00:12:44Z")"#,
        "-9223372036000000000",
    ),
    (
        r#"time.parse_rfc3339_ns("2262-04-11T23:47:16Z")"#,
        "9223372036000000000",
    ),
    (
        r#"time.parse_rfc3339_ns("2024-01-01T00:00:00,5Z")"#,
        "1704067200500000000",
    ),
    (
        r#"time.parse_rfc3339_ns("2024-01-01T00:00:00+23:59")"#,
        "1703980860000000000",
    ),
    (
        r#"time.parse_rfc3339_ns("2000-03-01T00:00:00Z")"#,
        "951868800000000000",
    ),
    (r#"regex.replace("foo bar", "o+", "0")"#, r#""f0 bar""#),
    (
        r#"regex.replace("foo bar", "(\\w+) (\\w+)", "$2 ${1}x $1x $$ $")"#,
        r#""bar foox  $ $""#,
    ),
    (r#"regex.replace("abc", "", "-")"#, r#""-a-b-c-""#),
    (r#"regex.replace("héllo", "l*", "_")"#, r#""_h_é_o_""#),
    (r#"regex.replace("aaa", "^a", "b")"#, r#""baa""#),
    (r#"regex.replace("abc", "x", "y")"#, r#""abc""#),
    (r#"regex.replace("foo", "(?P<n>o)", "<$n>")"#, r#""f<o><o>""#),
    (r#"regex.replace("foo", "o", "$0$9")"#, r#""foo""#),
    (r#"regex.replace("ab", "(a)|(b)", "[$1$2]")"#, r#""[a][b]""#),
    (r#"regex.replace("abcabc", "b*", "x")"#, r#""xaxcxaxcx""#),
    (
        r#"[p | walk({"a": [1, {"b": 2}], "c": {"d", 3}}, p)]"#,
        r#"[[[], {"a": [1, {"b": 2}], "c": {3, "d"}}], [["a"], [1, {"b": 2}]], [["a", 0], 1], [["a", 1], {"b": 2}], [["a", 1, "b"], 2], [["c"], {3, "d"}], [["c", 3], 3], [["c", "d"], "d"]]"#,
    ),
    (
        "[[p, v] | walk(input.o, [p, v])]",
        r#"[[[], {"a": [1, "x", {"b": null}], "c": true}], [["a"], [1, "x", {"b": null}]], [["a", 0], 1], [["a", 1], "x"], [["a", 2], {"b": null}], [["a", 2, "b"], null], [["c"], true]]"#,
    ),
    ("[v | [_, v] := walk(input.arr)]", r#"[["b", "a"], "b", "a"]"#),
    (r#"{v | walk([input.n, [6]], [["0"], v])}"#, "set()"),
    ("[p | walk(5, p)]", "[[[], 5]]"),
    (r#"count([1 | walk({"a": {"b": {"c": {}}}}, [_, _])])"#, "4"),
    ("[x | walk(input.undefined, x)]", "[]"),
    ("[v | walk([[1, 2], 3], [[i], v])]", "[[1, 2], 3]"),
    (
        r#"[p | walk({"x": [{"t": "q"}]}, [p, "q"])]"#,
        r#"[["x", 0, "t"]]"#,
    ),
    ("[v | some v in [[1, 2], [3]][_]]", "[1, 2, 3]"),
    (
        "[[k, v] | some k, v in [[1, 2], [3]][_]]",
        "[[0, 1], [1, 2], [0, 3]]",
    ),
    (
        r#"[[i, v] | some v in {"a": [1, 2], "b": [3]}[i]]"#,
        r#"[["a", 1], ["a", 2], ["b", 3]]"#,
    ),
    (r#"[v | some v in {"a": {"x": [1], "y": [2]}}[_][_]]"#, "[1, 2]"),
];

/// Expressions that OPA has no value for.
const REFUSED: [&str; 93] = [
    "trace(input.n)",
    r#"regex.find_all_string_submatch_n("(", "a", 1)"#,
    r#"regex.find_all_string_submatch_n("a", "a", 1.5)"#,
    r#"regex.find_all_string_submatch_n(input.n, "a", 1)"#,
    "base64.encode(input.n)",
    "union(input.arr)",
    "union({1})",
    r#"sprintf("%s", "a")"#,
    "sprintf(1, [])",
    r#"concat(",", [input.n])"#,
    r#"concat(input.n, ["a"])"#,
    r#"concat(",", input.s)"#,
    r#"replace(input.n, "a", "b")"#,
    r#"json.unmarshal("1 2")"#,
    r#"json.unmarshal("")"#,
    r#"json.unmarshal("[1,]")"#,
    r#"json.unmarshal("01")"#,
    r#"json.unmarshal("1.")"#,
    r#"json.unmarshal("+1")"#,
    r#"json.unmarshal("nul")"#,
    r#"json.unmarshal("\"a\tb\"")"#,
    r#"json.unmarshal("'a'")"#,
    "json.unmarshal(input.n)",
    r#"json.unmarshal("\"\\x\"")"#,
    r#"json.unmarshal("[1 2]")"#,
    r#"json.unmarshal("{1:2}")"#,
    r#"to_number("1e400")"#,
    r#"to_number("")"#,
    r#"to_number(" 5")"#,
    r#"to_number("5 ")"#,
    r#"to_number("inf")"#,
    r#"to_number("-Infinity")"#,
    r#"to_number("NaN")"#,
    r#"to_number("abc")"#,
    "to_number(input.arr)",
    r#"to_number("1e")"#,
    r#"to_number("--5")"#,
    r#"to_number(".")"#,
    "array.concat([1], {2})",
    "array.concat([1], input.n)",
    r#"object.union_n([{"a": 1}, input.n])"#,
    "object.union_n(input.o)",
    r#"base64.decode("aGVsbG8")"#,
    r#"base64.decode("aGVsbG8==")"#,
    r#"base64.decode("a===")"#,
    r#"base64.decode("====")"#,
    r#"base64.decode("YQ==YQ==")"#,
    r#"base64.decode("a-_=")"#,
    "base64.decode(input.n)",
    r#"semver.compare("1.0", "1.0.0")"#,
    r#"semver.compare("1.0.0.0", "1.0.0")"#,
    r#"semver.compare("1.0.0-a_b", "1.0.0")"#,
    r#"semver.compare("1.0.0", "")"#,
    r#"semver.compare("99999999999999999999.0.0", "1.0.0")"#,
    r#"semver.compare(input.n, "1.0.0")"#,
    r#"urlquery.decode("%")"#,
    r#"urlquery.decode("%zz")"#,
    r#"urlquery.decode("%4")"#,
    "urlquery.decode(input.n)",
    r#"units.parse_bytes("10 mb")"#,
    r#"units.parse_bytes("mb")"#,
    r#"units.parse_bytes("")"#,
    r#"units.parse_bytes("10xb")"#,
    r#"units.parse_bytes("1.2.3mb")"#,
    r#"units.parse_bytes(".")"#,
    "units.parse_bytes(input.n)",
    "numbers.range(1.5, 3)",
    "numbers.range(1, input.s)",
    r#"net.cidr_contains("10.0.0.0/33", "10.0.0.1")"#,
    r#"net.cidr_contains("10.0.0.0/+8", "10.0.0.1")"#,
    r#"net.cidr_contains("10.0.0.0/", "10.0.0.1")"#,
    r#"net.cidr_contains("10.0.0.0", "10.0.0.1")"#,
    r#"net.cidr_contains("010.0.0.0/8", "10.0.0.1")"#,
    r#"net.cidr_contains("10.0.0.0/8", "x")"#,
    r#"net.cidr_contains("10.0.0.0/8", "10.0.0.01")"#,
    r#"net.cidr_contains("fe80::/10", "fe80::1%eth0")"#,
    r#"net.cidr_contains(input.n, "10.0.0.1")"#,
    r#"time.parse_rfc3339_ns("2023-02-29T12:34:56Z")"#,
    r#"time.parse_rfc3339_ns("2024-12-31T23:59:60Z")"#,
    r#"time.parse_rfc3339_ns("2024-12-31t23:59:59z")"#,
    r#"time.parse_rfc3339_ns("2024-12-31 23:59:59Z")"#,
    r#"time.parse_rfc3339_ns("2024-12-31T23:59:59")"#,
    r#"time.parse_rfc3339_ns("2024-12-31T24:00:00Z")"#,
    r#"time.parse_rfc3339_ns("1677-09-21T00:12:43Z")"#,
    r#"time.parse_rfc3339_ns("2262-04-11T23:47:17Z")"#,
    r#"time.parse_rfc3339_ns("0001-01-01T00:00:00Z")"#,
    r#"time.parse_rfc3339_ns("2024-01-01T00:00:00.Z")"#,
    r#"time.parse_rfc3339_ns("2024-13-01T00:00:00Z")"#,
    r#"time.parse_rfc3339_ns("1900-02-29T00:00:00Z")"#,
    r#"time.parse_rfc3339_ns("")"#,
    "time.parse_rfc3339_ns(input.n)",
    r#"regex.replace("abc", "(", "-")"#,
    r#"regex.replace(input.n, "a", "b")"#,
];

/// Proves RG-3.
#[test]
fn a_built_in_says_what_opa_says() {
    for (expression, expected) in VALUES {
        let said = says(&format!("said := {expression}; said == {expected}"), &document());
        assert!(is_matched(&said), "{expression} is not {expected}: {said:?}");
    }
}

/// Proves RG-3.
#[test]
fn what_opa_has_no_value_for_is_refused_and_is_never_no_match() {
    for expression in REFUSED {
        let said = says(&format!("x := {expression}; x == 1"), &document());
        assert!(matches!(said, Err(Failure::Refused(_))), "{expression}: {said:?}");
        // OPA has no value, so that `not` holds.
        let said = says(&format!("not {expression}"), &document());
        assert!(is_matched(&said), "not {expression}: {said:?}");
    }
}

/// Numbers and times that OPA reads and this engine reads too, although OPA cannot write the number back.
#[test]
fn a_number_is_read_with_its_sign_and_zeros() {
    for (text, number) in [("+5", 5), ("007", 7), ("5.", 5), ("1e3", 1000)] {
        let said = says(&format!("to_number({text:?}) == {number}"), &json!({}));
        assert!(is_matched(&said), "{text}: {said:?}");
    }
    assert!(is_matched(&says("to_number(\".5\") == 0.5", &json!({}))));
    assert!(is_matched(&says("json.unmarshal(\"1e3\") == 1000", &json!({}))));
}

/// What OPA has a value for and this engine refuses: a wrong value would be a wrong verdict.
#[test]
fn what_is_not_said_exactly_is_refused() {
    for expression in [
        "semver.is_valid(\"v1.2.3\")",
        "json.marshal(1.5)",
        "json.marshal([1.5e22])",
        "json.marshal({1: 2})",
        "to_number(\"1_000\")",
        "to_number(\"0x10\")",
        "base64.decode(\"+/+/\")",
        "urlquery.decode(\"%ff\")",
        "semver.compare(\"v1.0.0\", \"1.0.0\")",
        "units.parse_bytes(\"-5kb\")",
        "units.parse_bytes(\"1e3\")",
        "time.parse_rfc3339_ns(\"2024-01-01T00:00:00+24:00\")",
        "time.parse_rfc3339_ns(\"2024-01-01T5:00:00Z\")",
        "sprintf(\"%*d\", [5, 1])",
        "sprintf(\"%[1]d\", [5])",
        "sprintf(\"%#v\", [5])",
        "sprintf(\"%U\", [5])",
        "sprintf(\"%p\", [5])",
        "sprintf(\"%05s\", [\"a\"])",
        "sprintf(\"%1001d\", [5])",
        "sprintf(\"%9999999d\", [1])",
        "sprintf(\"%x\", [1.5])",
    ] {
        let said = says(&format!("x := {expression}; x == 1"), &json!({}));
        assert!(matches!(said, Err(Failure::Refused(_))), "{expression}: {said:?}");
    }
}

/// What would be larger than its row allows ends the evaluation; `not` and a default do not make an answer of it.
///
/// Proves RG-7.
#[test]
fn a_result_ends_at_its_bound() {
    let text = |n: usize| json!({"t": "x".repeat(n)});
    let half = TEXT_BYTES / 2;
    let nested = |n: usize| json!({"t": format!("{}1{}", "[".repeat(n), "]".repeat(n))});
    let list = |n: usize| json!({"t": format!("[{}1]", "1,".repeat(n))});
    let digits = |n: usize| json!({"t": "9".repeat(n)});
    let deep = |n: usize| json!({"t": vec![json!([1, 2, 3]); n]});
    let cases: Vec<(&str, serde_json::Value, serde_json::Value)> = vec![
        (
            "count(concat(\"\", [input.t, input.t])) > 0",
            text(half),
            text(half + 1),
        ),
        (
            "count(sprintf(\"%s%s\", [input.t, input.t])) > 0",
            text(half),
            text(half + 1),
        ),
        (
            "count(replace(\"ab\", \"a\", input.t)) > 0",
            text(TEXT_BYTES - 1),
            text(TEXT_BYTES),
        ),
        (
            "count(regex.replace(\"ab\", \"a\", input.t)) > 0",
            text(TEXT_BYTES - 1),
            text(TEXT_BYTES),
        ),
        (
            "count(base64.encode(input.t)) > 0",
            text(TEXT_BYTES / 4 * 3 - 3),
            text(TEXT_BYTES / 4 * 3),
        ),
        (
            "count(json.marshal(input.t)) > 0",
            text(TEXT_BYTES - 2),
            text(TEXT_BYTES - 1),
        ),
        (
            // Each group holds the whole match once more.
            "count(regex.find_all_string_submatch_n(\"(((((((x+)))))))\", input.t, -1)) > 0",
            text(TEXT_BYTES / 8 - 16),
            text(TEXT_BYTES / 8),
        ),
        (
            "json.unmarshal(input.t)",
            nested(DOCUMENT_LEVELS - 1),
            nested(DOCUMENT_LEVELS),
        ),
        (
            "json.is_valid(input.t)",
            nested(DOCUMENT_LEVELS - 1),
            nested(DOCUMENT_LEVELS),
        ),
        (
            "count(json.unmarshal(input.t)) > 0",
            list(DOCUMENT_NODES - 2),
            list(DOCUMENT_NODES - 1),
        ),
        ("to_number(input.t) > 1", digits(300), digits(NUMBER_BYTES + 1)),
        (
            "units.parse_bytes(input.t) > 1",
            digits(NUMBER_BYTES),
            digits(NUMBER_BYTES + 1),
        ),
        ("count([1 | walk(input.t, _)]) > 1", deep(2_000), deep(100_000)),
        (
            // Groups that are empty, so that nothing is made of what is read for each match.
            "regex.replace(input.t, \"(y?)x\", concat(\"\", [\"$1$1$1$1$1$1$1$1\" | some _ in numbers.range(1, 100)])) == \"\"",
            text(1_000),
            text(1 << 20),
        ),
        (
            "count(numbers.range(to_number(input.t), to_number(input.t) + 60000)) > 1",
            digits(10),
            digits(300),
        ),
    ];
    for (condition, within, beyond) in cases {
        let said = says(condition, &within);
        assert!(is_matched(&said), "{condition}: {said:?}");
        assert_eq!(says(condition, &beyond), Err(Failure::Stopped), "{condition}");
        if !condition.contains("walk") {
            let negated = format!("not {condition}");
            assert_eq!(says(&negated, &beyond), Err(Failure::Stopped), "{negated}");
        }
    }
    let range = |n: usize| format!("count(numbers.range(1, {n})) > 0");
    assert!(is_matched(&says(&range(RANGE_ELEMENTS), &json!({}))));
    assert_eq!(
        says(&range(RANGE_ELEMENTS + 1), &json!({})),
        Err(Failure::Stopped)
    );
    assert_eq!(says(&range(1_000_000_000), &json!({})), Err(Failure::Stopped));
    for text in ["1e1000", "1e-400", "0.1e-999"] {
        let said = says(&format!("json.unmarshal({text:?}) >= 0"), &json!({}));
        assert_eq!(said, Err(Failure::Stopped), "{text}");
    }
}

/// Proves RG-7.
#[test]
fn what_was_made_is_charged() {
    let input = json!({"t": "x".repeat(TEXT_BYTES / 2), "n": (0..100).collect::<Vec<u32>>()});
    let often = "every n in input.n { count(concat(\"\", [input.t, sprintf(\"%d\", [n])])) > 0 }";
    assert_eq!(says(often, &input), Err(Failure::Stopped));
    let often = "every n in input.n { count(numbers.range(n, n + 60000)) > 0 }";
    assert_eq!(
        says(often, &json!({"n": (0..100).collect::<Vec<u32>>()})),
        Err(Failure::Stopped)
    );
}

#[test]
fn walk_is_refused_where_its_loop_would_ask_something_else() {
    let source = format!("{START}match := {{\"matched\": true}} if not walk(input, [_, \"x\"])");
    let faults = Module::compile(Family::Content, &source).unwrap_err();
    assert!(
        faults[0].line == 4 && faults[0].message.contains("walk"),
        "{faults:?}"
    );
    let source = format!("{START}match := {{\"matched\": true}} if not has\nhas if walk(input, [_, \"x\"])");
    let module = Module::compile(Family::Content, &source).unwrap();
    assert!(is_matched(&module.evaluate(&json!({"a": [1, {"b": "y"}]}))));
    assert!(!is_matched(&module.evaluate(&json!({"a": [1, {"b": "x"}]}))));
}

#[test]
fn walk_in_every_is_a_condition() {
    let condition = "every item in input.items { walk(item, [_, \"x\"]) }";
    assert!(is_matched(&says(
        condition,
        &json!({"items": [["x"], {"a": "x"}]})
    )));
    assert_eq!(
        says(condition, &json!({"items": [["x"], {"a": "y"}]})).map(|a| a.matched),
        Ok(false)
    );
}

#[test]
fn some_in_goes_through_what_a_wildcard_finds() {
    let condition = "some rule in input.groups[_]; rule.open == true";
    assert!(is_matched(&says(
        condition,
        &json!({"groups": [[{"open": false}], [{"open": true}]]})
    )));
    for groups in [json!([[{"open": false}], []]), json!([])] {
        let said = says(condition, &json!({"groups": groups}));
        assert_eq!(said.map(|a| a.matched), Ok(false));
    }
    let in_every = "every g in input.groups { some rule in g[_]; rule == 1 }";
    assert!(is_matched(&says(in_every, &json!({"groups": [[[2, 1]], [[1]]]}))));
    assert_eq!(
        says(in_every, &json!({"groups": [[[2]], [[1]]]})).map(|a| a.matched),
        Ok(false)
    );
}

#[test]
fn what_prints_is_left_out() {
    for condition in [
        "print(\"a\", input.x); input.n == 5",
        "input.n == 5; print(input.undefined.member)",
        "count([1 | some n in [1, 2]; print(n)]) == 2",
        "every n in [1, 2] { print(n); n > 0 }",
        "not print(1)",
    ] {
        let said = says(condition, &document());
        assert!(is_matched(&said), "{condition}: {said:?}");
    }
    let own = format!("{START}match := {{\"matched\": true}} if print(1)\nprint(x) if x == 2");
    assert!(Module::compile(Family::Content, &own).is_err());
    let value = format!("{START}match := {{\"matched\": print(1)}}");
    assert!(Module::compile(Family::Content, &value).is_err());
}

/// A fault is said with its place and with what to write instead.
#[test]
fn a_module_that_does_not_compile_says_where_and_what_to_do() {
    let fault = |source: &str| {
        Module::compile(Family::Content, source)
            .unwrap_err()
            .swap_remove(0)
    };
    for (source, line, words) in [
        ("package forge.content\n\ndeny := true", 1, "no rule `match`"),
        ("package forge.content\n\ndeny := true", 1, "`deny` in line 3"),
        (
            "# a\npackage forge.access\nmatch := {\"matched\": true}",
            2,
            "package must be forge.content",
        ),
        (
            "package forge.content\nimport data.lib\nmatch := {\"matched\": true} if lib.f(1)",
            2,
            "import data.lib: a policy is one module",
        ),
        (
            "package forge.content\nmatch := {\"matched\": true} if http.send({}).x",
            2,
            "no built-in of that name",
        ),
        (
            "package forge.content\n\nmatch := {\"matched\": true} if {\n  time.now_ns() > 1\n}",
            4,
            "time.now_ns",
        ),
        (
            "package forge.content\nmatch := {\"matched\": true} if bits.lsh(1, 2) > 1",
            2,
            "bits.lsh cannot be used",
        ),
        ("package forge.content\nx := 1e1000\nmatch := {}", 2, "exponent"),
        (
            "package forge.content\nx := [[[[[[[[[[[1]]]]]]]]]]]\nmatch := {}",
            2,
            "deeper than 10",
        ),
    ] {
        let found = fault(source);
        assert!(found.message.contains(words), "{source}: {found:?}");
        assert!(found.line == line && found.column > 0, "{source}: {found:?}");
    }
}

/// Proves RG-4.
#[test]
fn a_built_in_of_texts_reads_what_it_is_given() {
    let missing = [vec!["identity", "name"]];
    let input = input::value(&json!({"tool": {"id": "x"}, "identity": {}}));
    for (condition, is_read) in [
        ("sprintf(\"%s\", [input.identity.name]) == \"a\"", true),
        ("walk(input.identity, [_, \"a\"])", true),
        ("walk(input, [_, \"a\"])", true),
        ("walk(input.tool, [_, \"a\"])", false),
        ("concat(\"\", [input.tool.id]) == \"a\"", false),
        ("replace(input.identity.name, \"a\", \"b\") == \"a\"", true),
    ] {
        let source = format!("{START}match := {{\"matched\": true}} if {condition}");
        let module = Module::compile(Family::Content, &source).unwrap();
        assert_eq!(
            module.ask(&input, &missing).has_read_missing,
            is_read,
            "{condition}"
        );
    }
}

#[test]
fn the_table_is_sorted_and_every_row_is_a_built_in() {
    let names: Vec<&str> = ADMITTED.iter().map(|row| row.name).collect();
    assert!(names.is_sorted());
    for row in &ADMITTED {
        assert_eq!(admitted(row.name).map(|found| found.name), Some(row.name));
        assert!(!row.refuses.is_empty() && !row.cost.said().is_empty() && !row.size.said().is_empty());
        assert!(
            regorus::unstable::BUILTINS.contains_key(row.name) || row.name.starts_with("__"),
            "{}",
            row.name
        );
    }
    assert!(admitted("http.send").is_none() && admitted("time.now_ns").is_none());
    assert_eq!(admitted("sprintf").map(|row| row.size), Some(Size::Text));
}

/// The guide's list is the table.
#[test]
fn the_guide_lists_every_built_in_as_the_table_has_it() {
    let guide = include_str!("../../../../docs/guide/policies.md");
    for row in &ADMITTED {
        let name = match row.name {
            "__builtin_sets.intersection" => "&",
            "__builtin_sets.union" => "\\|",
            name => name,
        };
        let (size, cost) = (row.size.said(), row.cost.said());
        let line = format!("| `{name}` | {size} | {cost} | {} |\n", row.refuses);
        assert!(guide.contains(&line), "the guide lacks {line}");
    }
    let (_, after) = guide
        .split_once("| built-in | a result is at most |")
        .unwrap_or_default();
    let rows = after
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with("| `"))
        .count();
    assert_eq!(rows, ADMITTED.len());
}
