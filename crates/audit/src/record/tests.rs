//! Encodings of records, binary and JSON.

use super::*;

use proptest::prelude::*;

/// An event of each kind, and variants of some.
pub(crate) fn events() -> Vec<AuditEvent> {
    let text = str::to_owned;
    let change = |object| {
        let (change, sha256) = (ChangeKind::Updated, Some([3; 32]));
        AuditAction::Change(ChangeEvent {
            object,
            name: text("ci"),
            change,
            sha256,
            detail: Some(text("中\0\"")),
        })
    };
    let actions = [
        AuditAction::Login(LoginEvent {
            method: text("key"),
            accepted: false,
            reason: Some(text("expired")),
            address: None,
        }),
        AuditAction::Refusal(RefusalEvent {
            operation: text("call"),
            resource: text("delete_all"),
            rule: None,
            reference: text("ref-1"),
        }),
        AuditAction::Call(call_event()),
        AuditAction::HeldCall(HeldCallEvent {
            reference: text("ref-2"),
            tool: text("write"),
            caller: text("key:ci"),
            decision: HeldCallDecision::Approved,
            rule: Some(text("rule 1")),
            arguments_sha256: Some([9; 32]),
        }),
        change(ChangedObject::Key),
        change(ChangedObject::Rule),
        change(ChangedObject::Config),
        change(ChangedObject::Server),
        AuditAction::Use(UseEvent {
            operation: text("read"),
            item: text("note://x/a"),
            server: Some(text("notes")),
            rule: None,
        }),
    ];
    let at = UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
    actions
        .into_iter()
        .map(|action| AuditEvent { at, principal: "oidc:https://idp.example#安".into(), action })
        .collect()
}

pub(crate) const ARGUMENTS: &str = r#"{"path":"a"}"#;

pub(crate) fn call_event() -> CallEvent {
    let digest = ring::digest::digest(&ring::digest::SHA256, ARGUMENTS.as_bytes());
    CallEvent {
        record: "0a1b2c3d4e5f6g7h8j".to_owned(),
        tool: "write_sheet".to_owned(),
        sources: vec!["excel".to_owned(), "native".to_owned()],
        arguments_sha256: digest.as_ref().try_into().unwrap(),
        status: CallStatus::Succeeded,
        may_change: true,
        rule: Some("rule 1".to_owned()),
        approver: None,
    }
}

#[test]
fn every_kind_reads_back() {
    let kinds: Vec<AuditKind> = events().iter().map(|event| event.action.kind()).collect();
    assert_eq!(kinds, AuditKind::ALL, "an event of each kind");
    for event in events() {
        let record = AuditRecord { sequence: 300, event };
        let bytes = record.encode();
        assert_eq!(AuditRecord::decode(&bytes).as_ref(), Some(&record));
        assert_eq!(sequence_of(&bytes), Some(300));
        for length in 0..bytes.len() {
            assert_eq!(AuditRecord::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(AuditRecord::decode(&[bytes.as_slice(), &[0]].concat()), None);
        assert_eq!(AuditRecord::from_members(&record.to_members()), Some(record));
    }
}

#[test]
fn borrowed_call_has_the_encoding_of_its_event() {
    let event = AuditEvent {
        at: UNIX_EPOCH + Duration::from_micros(1_234_567),
        principal: "key:ci".into(),
        action: AuditAction::Call(call_event()),
    };
    let call = CallFields {
        micros: 1_234_567,
        principal: "key:ci",
        record: "0a1b2c3d4e5f6g7h8j",
        tool: "write_sheet",
        arguments: ARGUMENTS,
        status: CallStatus::Succeeded,
        may_change: true,
        rule: Some("rule 1"),
        approver: None,
    };
    let (mut borrowed, mut owned) = (Vec::new(), Vec::new());
    encode_call(&call, ["excel", "native"].into_iter(), &mut borrowed);
    encode_event(&event, &mut owned);
    assert_eq!(borrowed, owned);
}

proptest! {
    /// Different records must not have the same encoding: whatever decodes encodes to the same bytes again.
    #[test]
    fn encoding_is_canonical(kind in 0..8_usize, flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4)) {
        let mut bytes = AuditRecord { sequence: 77, event: events().swap_remove(kind) }.encode();
        for (at, byte) in flips {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Some(record) = AuditRecord::decode(&bytes) {
            prop_assert_eq!(&record.encode(), &bytes);
            prop_assert_eq!(AuditRecord::from_members(&record.to_members()), Some(record));
        }
    }

    /// Texts that move a byte from one field to the next give another encoding.
    #[test]
    fn fields_do_not_run_together(left in "[a-c]{0,4}", right in "[a-c]{0,4}", other in "[a-c]{0,4}", last in "[a-c]{0,4}") {
        let encode = |operation: &str, resource: &str| {
            let refusal = RefusalEvent {
                operation: operation.to_owned(),
                resource: resource.to_owned(),
                rule: None,
                reference: String::new(),
            };
            let event = AuditEvent { at: UNIX_EPOCH, principal: "p".into(), action: AuditAction::Refusal(refusal) };
            AuditRecord { sequence: 1, event }.encode()
        };
        prop_assert_eq!(encode(&left, &right) == encode(&other, &last), (&left, &right) == (&other, &last));
    }
}
