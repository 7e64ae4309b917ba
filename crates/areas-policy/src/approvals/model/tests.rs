use super::*;

fn party(id: &str) -> Party {
    Party {
        kind: "user".into(),
        id: id.into(),
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn asked(quorum: i64, max_uses: i64) -> Approval {
    Approval {
        id: ApprovalId::from_store("apr_01kaf9q2m4x7t8v3c5d6e0g1h2".into()),
        grant_id: GrantId::from_store("grt_01kaf9q2m4x7t8v3c5d6e0g1h2".into()),
        kind: Kind::ToolCall,
        state: State::Pending,
        asker: party("hook"),
        owner_id: "hook".into(),
        subject: party("ada"),
        subject_rights: String::new(),
        call_mac: String::new(),
        binding_mac: String::new(),
        tool: "Bash".into(),
        gains: Vec::new(),
        policies: Vec::new(),
        route: None,
        quorum,
        votes: Vec::new(),
        max_uses,
        uses: Vec::new(),
        deadline_at: at(0).plus_secs(PENDING_SECS),
        grant_until: None,
        sealed: None,
        created_at: at(0),
        decided_at: None,
        ended_at: None,
        end_reason: None,
        revision: 0,
    }
}

fn say(approval: &mut Approval, who: &str, choice: Choice, now: i64) -> std::result::Result<Effect, Refusal> {
    let vote = Vote {
        by: party(who),
        in_name_of: None,
        choice,
        at: at(now),
    };
    let everybody = &mut |_: &Vote| Ok(true);
    approval.vote(vote, at(now), &Behind::new(), everybody).unwrap()
}

/// Proves AP-3.
#[test]
fn neither_who_asked_nor_whom_it_is_for_votes() {
    let mut one = asked(1, 1);
    for who in ["hook", "ada"] {
        for choice in Choice::ALL {
            assert_eq!(say(&mut one, who, choice, 1), Err(Refusal::Own));
        }
    }
    assert_eq!((one.votes.len(), one.state), (0, State::Pending));
    say(&mut one, "bob", Choice::Approve, 2).unwrap();
    assert_eq!(one.state, State::Approved);
}

/// Proves AP-3.
#[test]
fn who_lost_the_right_before_the_quorum_does_not_count() {
    let mut one = asked(2, 1);
    say(&mut one, "bob", Choice::Approve, 1).unwrap();
    // The same person twice is one.
    assert_eq!(say(&mut one, "bob", Choice::Approve, 2), Ok(Effect::Nothing));
    let vote = |who: &str| Vote {
        by: party(who),
        in_name_of: None,
        choice: Choice::Approve,
        at: at(3),
    };
    let without_bob = &mut |vote: &Vote| Ok(vote.by.id != "bob");
    assert_eq!(
        one.vote(vote("bob"), at(3), &Behind::new(), without_bob).unwrap(),
        Err(Refusal::MayNotDecide)
    );
    one.vote(vote("cay"), at(3), &Behind::new(), without_bob)
        .unwrap()
        .unwrap();
    assert_eq!(one.state, State::Pending);
    one.vote(vote("dan"), at(4), &Behind::new(), without_bob)
        .unwrap()
        .unwrap();
    assert_eq!(one.state, State::Approved);
}

/// Proves AP-3.
#[test]
fn who_stands_behind_who_asked_and_what_is_no_person_says_no_yes() {
    let everybody = &mut |_: &Vote| Ok(true);
    let vote = |who: &str, kind: &str, choice: Choice| Vote {
        by: Party {
            kind: kind.into(),
            id: who.into(),
        },
        in_name_of: None,
        choice,
        at: at(1),
    };
    let behind = Behind::from(["eve".to_owned()]);
    let mut one = asked(1, 1);
    let refused = [
        (vote("eve", "user", Choice::Approve), Refusal::Own),
        (vote("eve", "user", Choice::Deny), Refusal::Own),
        (
            vote("robot", "service_account", Choice::Approve),
            Refusal::NotAPerson,
        ),
        (vote("robot", "device", Choice::Approve), Refusal::NotAPerson),
    ];
    for (vote, why) in refused {
        assert_eq!(one.vote(vote, at(1), &behind, everybody).unwrap(), Err(why));
    }
    assert_eq!((one.votes.len(), one.state), (0, State::Pending));
    // What was said before somebody came to stand behind it does not count, and no machine's word that is there.
    let mut two = asked(2, 1);
    two.votes.push(vote("robot", "service_account", Choice::Approve));
    two.vote(
        vote("eve", "user", Choice::Approve),
        at(1),
        &Behind::new(),
        everybody,
    )
    .unwrap()
    .unwrap();
    two.vote(vote("bob", "user", Choice::Approve), at(1), &behind, everybody)
        .unwrap()
        .unwrap();
    assert_eq!(two.state, State::Pending);
    two.vote(vote("cay", "user", Choice::Approve), at(1), &behind, everybody)
        .unwrap()
        .unwrap();
    assert_eq!(two.state, State::Approved);
    // A machine may say no.
    one.vote(
        vote("robot", "service_account", Choice::Deny),
        at(1),
        &behind,
        everybody,
    )
    .unwrap()
    .unwrap();
    assert_eq!(one.state, State::Denied);
}

#[test]
fn one_no_ends_a_request_and_a_word_can_be_taken_back_before() {
    let mut one = asked(2, 1);
    say(&mut one, "bob", Choice::Approve, 1).unwrap();
    assert_eq!(one.abstain(&party("bob"), at(2)), Ok(Effect::Changed));
    assert_eq!(one.abstain(&party("bob"), at(2)), Ok(Effect::Nothing));
    say(&mut one, "cay", Choice::Approve, 3).unwrap();
    assert_eq!(one.state, State::Pending);
    say(&mut one, "cay", Choice::Deny, 4).unwrap();
    assert_eq!(one.state, State::Denied);
    assert_eq!(say(&mut one, "cay", Choice::Deny, 5), Ok(Effect::Nothing));
    for (who, choice) in [
        ("cay", Choice::Approve),
        ("bob", Choice::Approve),
        ("bob", Choice::Deny),
    ] {
        assert_eq!(say(&mut one, who, choice, 5), Err(Refusal::Stands(State::Denied)));
    }
    assert_eq!(
        one.abstain(&party("cay"), at(6)),
        Err(Refusal::Stands(State::Denied))
    );
}

/// Proves AP-1, AP-5.
#[test]
fn what_was_approved_is_used_once_and_before_its_end() {
    let mut one = asked(1, 1);
    assert_eq!(one.consume("e1", at(1)), Err(Refusal::Stands(State::Pending)));
    say(&mut one, "bob", Choice::Approve, 2).unwrap();
    let mut late = one.clone();
    let end = at(2).plus_secs(GRANT_SECS);
    assert_eq!(late.consume("e1", end), Err(Refusal::Stands(State::Expired)));
    assert_eq!(late.expire(end), Effect::Changed);
    assert_eq!(one.consume("e1", at(3)), Ok(Effect::Changed));
    // A unit that runs again is the same use.
    assert_eq!(one.consume("e1", at(3)), Ok(Effect::Nothing));
    assert_eq!(one.consume("e2", at(3)), Err(Refusal::Stands(State::Used)));
    assert_eq!((one.state, one.uses.len()), (State::Used, 1));
    assert_eq!(one.revoke(at(4)), Err(Refusal::Stands(State::Used)));
}

#[test]
fn nothing_is_decided_after_the_deadline() {
    let mut one = asked(1, 1);
    let late = at(0).plus_secs(PENDING_SECS);
    assert_eq!(
        say(&mut one, "bob", Choice::Approve, late.as_ms()),
        Err(Refusal::Stands(State::Expired))
    );
    assert_eq!(one.cancel(late), Err(Refusal::Stands(State::Expired)));
    assert_eq!(one.expire(at(1)), Effect::Nothing);
    assert_eq!(one.expire(late), Effect::Changed);
    assert_eq!(one.make_void(late, "policy_changed"), Effect::Nothing);
}

fn lent_vote(who: &str, of: &str) -> Vote {
    Vote {
        by: party(who),
        in_name_of: Some(Lent {
            user_id: of.into(),
            delegation_id: DelegationId::from_store(format!("dlg_{of}")),
        }),
        choice: Choice::Approve,
        at: at(1),
    }
}

/// Proves AP-19.
#[test]
fn who_says_several_names_is_one_and_who_is_named_twice_is_one() {
    let everybody = &mut |_: &Vote| Ok(true);
    let own = |who: &str| Vote {
        in_name_of: None,
        ..lent_vote(who, who)
    };
    // An approver of their own right who votes for two others is one person, however often they say it.
    let mut one = asked(2, 1);
    for vote in [own("bob"), lent_vote("bob", "cay"), lent_vote("bob", "dan")] {
        one.vote(vote, at(1), &Behind::new(), everybody).unwrap().unwrap();
    }
    assert_eq!((one.votes.len(), one.state), (1, State::Pending));
    assert_eq!(one.votes[0].holder(), party("dan"));
    // Whose vote two say, or they and somebody else, is one.
    one.vote(lent_vote("eve", "dan"), at(1), &Behind::new(), everybody)
        .unwrap()
        .unwrap();
    one.vote(own("dan"), at(1), &Behind::new(), everybody)
        .unwrap()
        .unwrap();
    assert_eq!((one.votes.len(), one.state), (3, State::Pending));
    // Two people, in two names.
    one.vote(own("eve"), at(1), &Behind::new(), everybody)
        .unwrap()
        .unwrap();
    assert_eq!(one.state, State::Approved);
}

/// Proves AP-3, AP-19.
#[test]
fn nobody_votes_in_the_name_of_who_stands_behind_the_call() {
    let everybody = &mut |_: &Vote| Ok(true);
    let mut one = asked(1, 1);
    let behind = Behind::from(["eve".to_owned()]);
    for vote in [
        lent_vote("bob", "ada"),
        lent_vote("bob", "eve"),
        lent_vote("eve", "bob"),
        lent_vote("ada", "bob"),
    ] {
        assert_eq!(
            one.vote(vote, at(1), &behind, everybody).unwrap(),
            Err(Refusal::Own)
        );
    }
    // What was said before somebody came to stand behind it neither counts nor lets anything pass.
    one.votes.push(lent_vote("bob", "eve"));
    assert!(!one.has_quorum(&behind, everybody).unwrap() && one.is_of_own(&behind));
    assert!(one.has_quorum(&Behind::new(), everybody).unwrap());
}

/// Steps of a generator of which every sequence is known (`xorshift64*`).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// Proves AP-1, AP-3, AP-5.
#[test]
fn no_interleaving_lets_more_pass_than_the_grant_says() {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let mut passed = 0_u64;
    for round in 0..100_000_u64 {
        let (quorum, limit) = (
            1 + i64::try_from(chance.below(3)).unwrap(),
            1 + i64::try_from(chance.below(3)).unwrap(),
        );
        let mut one = asked(quorum, limit);
        let (mut now, mut ended, mut rights) = (1_i64, None, [true; 4]);
        for step in 0..16 {
            now += i64::try_from(chance.below(PENDING_SECS as u64 * 150)).unwrap();
            let before = one.clone();
            match chance.below(10) {
                0..=3 => {
                    let who = usize::try_from(chance.below(4)).unwrap();
                    let names = ["ada", "bob", "cay", "dan"];
                    let choice = if chance.below(12) == 0 {
                        Choice::Deny
                    } else {
                        Choice::Approve
                    };
                    let vote = Vote {
                        by: party(names[who]),
                        in_name_of: None,
                        choice,
                        at: at(now),
                    };
                    let may = &mut |vote: &Vote| {
                        Ok(names
                            .iter()
                            .position(|name| *name == vote.by.id)
                            .is_some_and(|at| rights[at]))
                    };
                    let said = one.vote(vote, at(now), &Behind::new(), may).unwrap();
                    let became = before.state != State::Approved && one.state == State::Approved;
                    if became {
                        let yes = one.votes.iter().filter(|vote| vote.choice == Choice::Approve);
                        let counted = yes.filter(|vote| {
                            let at = names.iter().position(|name| *name == vote.by.id).unwrap();
                            vote.by.id != "ada" && rights[at]
                        });
                        assert!(i64::try_from(counted.count()).unwrap() >= quorum, "round {round}");
                    }
                    if said.is_err() {
                        assert_eq!(before, one, "a refused vote changes nothing: round {round}");
                    }
                }
                4..=6 => {
                    // Now and then a decision that was there already.
                    let event = format!("e{}", if chance.below(4) == 0 { step - 1 } else { step });
                    if one.consume(&event, at(now)) == Ok(Effect::Changed) {
                        assert_eq!(before.state_at(at(now)), State::Approved, "round {round}");
                        assert_eq!(ended, None, "a use after an end: round {round}");
                        passed += 1;
                    }
                }
                7 => match chance.below(4) {
                    0 => drop(one.revoke(at(now))),
                    1 => drop(one.cancel(at(now))),
                    2 => drop(one.make_void(at(now), "policy_changed")),
                    _ => drop(one.abstain(&party("bob"), at(now))),
                },
                8 => drop(one.expire(at(now))),
                _ => {
                    let who = usize::try_from(chance.below(4)).unwrap();
                    rights[who] = !rights[who];
                }
            }
            if one.state.is_ended() && ended.is_none() {
                ended = Some(one.state);
            }
            assert!(
                ended.is_none_or(|state| state == one.state),
                "an end has an end: round {round}"
            );
            assert!(i64::try_from(one.uses.len()).unwrap() <= limit, "round {round}");
        }
    }
    assert!(
        passed > 1_000,
        "the interleavings hardly ever use anything: {passed}"
    );
}
