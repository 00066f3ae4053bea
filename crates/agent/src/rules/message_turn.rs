//! Rewrites idioms about mail and events: `drop a@b.io a line`, `Book "X" on …`, `Invite a@b.io to …`, `Respond to 4471: …`.

use super::literal::{Found, Literal};
use super::turn::read;

/// `drop a@b.io a line`, `ping a@b.io, subject …`: the address shows that a mail is meant.
pub(super) fn mailed(text: &str) -> Option<String> {
    const VERBS_OF_MAIL: [&str; 15] = [
        "drop ", "shoot ", "ping ", "fire ", "email ", "mail ", "e-mail ", "message ", "write ", "send ",
        "hit up ", "tell ", "notify ", "let ", "text ",
    ];
    const NOTES: [&str; 20] = [
        " a line",
        " a quick line",
        " an email",
        " a mail",
        " a note",
        " a quick note",
        " a message",
        " a short note",
        " a quick email",
        " an e-mail",
        " one",
        " off an email",
        " a quick mail",
        " a short email",
        " a quick message",
        " a short mail",
        " about it",
        " about that",
        " by mail",
        " by email",
    ];
    let (literals, masked) = read(text);
    let mail = literals.iter().find(|found| matches!(found.literal, Literal::Mail(_)))?;
    let verb = VERBS_OF_MAIL.iter().find(|verb| masked[..mail.start].ends_with(**verb))?;
    let at = mail.start - verb.len();
    let position = at == 0 || masked[..at].ends_with([' ', ',', '.', ':']);
    // `email a@b.io` needs no rewriting.
    let note =
        NOTES.iter().filter(|note| masked[mail.end..].starts_with(**note)).map(|note| note.len()).max();
    let labelled = masked[mail.end..].contains("subject") || masked[mail.end..].contains("body");
    let told = ["tell ", "notify ", "let "].contains(verb);
    let plain = ["email ", "mail ", "e-mail ", "send ", "write "].contains(verb);
    if !position || note.is_none() && plain && !masked[mail.end..].starts_with(':') || told && !labelled {
        return None;
    }
    let rest = &text[mail.end + note.unwrap_or(0)..];
    let rest = rest.strip_prefix(':').map_or(rest.to_owned(), |rest| format!(",{rest}"));
    Some(format!("{}send an email to {}{rest}", &text[..at], &text[mail.start..mail.end]))
}

/// `Book "Review" on 2026-11-12 …`: a quoted title with a time is an event.
pub(super) fn booked(text: &str) -> Option<String> {
    let (literals, masked) = read(text);
    let verbs = ["book ", "schedule ", "pencil in ", "slot in ", "set up ", "arrange "];
    literals.iter().filter(|found| matches!(found.literal, Literal::Quoted(_))).find_map(|found| {
        let verb = verbs.iter().find(|verb| masked[..found.start].ends_with(**verb))?;
        let at = found.start - verb.len();
        let position = at == 0 || masked[..at].ends_with([' ', ',', '.', ':']);
        let own = masked[found.end..].contains("event") || masked[at..found.start].contains("event");
        (position && !own).then(|| format!("{}create an event {}", &text[..at], &text[found.start..]))
    })
}

/// `Invite a@b.io to "Review" on …`, 邀请 a@b.io 参加 … 的“评审”会议: an event with its attendees.
pub(super) fn invited(text: &str) -> Option<String> {
    let (literals, masked) = read(text);
    let title = literals.iter().find(|found| matches!(found.literal, Literal::Quoted(_)))?;
    let mails: Vec<&Found> =
        literals.iter().filter(|found| matches!(found.literal, Literal::Mail(_))).collect();
    let (first, last) = (mails.first()?, mails.last()?);
    let people = text.get(first.start..last.end)?;
    if let Some(lead) = ["invite ", "please invite "].iter().find(|lead| masked.starts_with(**lead)) {
        let to = masked.get(last.end..title.start)?.trim();
        let known = [
            "to",
            "to a meeting",
            "to the meeting",
            "to an event",
            "to the event",
            "to a meeting called",
            "to",
        ]
        .contains(&to);
        return (first.start == lead.len() && known).then(|| {
            format!(
                "create an event {}{} with {people}",
                &text[title.start..title.end],
                text[title.end..].trim_end_matches(['.', '!'])
            )
        });
    }
    let head = masked[..first.start].trim_end();
    let when =
        masked.get(last.end..title.start)?.trim().strip_prefix("参加")?.trim().strip_suffix('的')?.trim();
    let at = text.find(when).filter(|_| head.ends_with("邀请") && !when.is_empty())?;
    let rest = text[title.end..].trim_start_matches("会议").trim_start_matches('会');
    Some(format!(
        "安排会议{}，{}，邀请 {people}{rest}",
        &text[title.start..title.end],
        &text[at..at + when.len()]
    ))
}

/// `put a 30 minute event called X in my calendar`: an event is created.
pub(super) fn put_event(text: &str) -> Option<String> {
    let (_, masked) = read(text);
    let at = if masked.starts_with("put a") { 0 } else { masked.find(" put a")? + 1 };
    let object = masked.get(at + 4..)?;
    let words: Vec<&str> = object.split(' ').take(6).collect();
    let event =
        words.iter().skip(1).position(|word| ["event", "meeting", "appointment", "call"].contains(word))?;
    let plain =
        words[1..=event].iter().all(|word| !["in", "on", "into", "to", "about", "for"].contains(word));
    (plain && ["a", "an"].contains(&words[0])).then(|| format!("{}create {}", &text[..at], &text[at + 4..]))
}

/// `Respond to 4471: sounds good`: the number is the ID of a mail.
pub(super) fn answered(text: &str) -> Option<String> {
    let (_, masked) = read(text);
    const LEADS: [&str; 8] = [
        "reply all to ",
        "reply to all on ",
        "reply to everyone on ",
        "reply all on ",
        "respond to ",
        "answer ",
        "reply to ",
        "write back to ",
    ];
    let lead = LEADS.iter().find(|lead| masked.starts_with(**lead))?;
    let rest = &masked[lead.len()..];
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let told = rest[digits..].starts_with(':')
        || rest[digits..].starts_with(" with")
        || rest[digits..].starts_with(" saying");
    let all = lead.contains(" all ") || lead.contains("everyone");
    let verb = if all { "Reply to all on mail" } else { "Reply to mail" };
    (digits > 1 && told).then(|| format!("{verb} {}", &text[lead.len()..]))
}
