//! Rewrites idioms about mail and events: `drop a@b.io a line`, `Book "X" on …`, `Invite a@b.io to …`, `Respond to 4471: …`.

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::rewrite::masked_text::read_masked;

/// `drop a@b.io a line`, `ping a@b.io, subject …`: the address shows that a mail is meant.
pub(crate) fn mail_to_address(text: &str) -> Option<String> {
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
    let (literals, masked) = read_masked(text);
    let mail = literals.iter().find(|found| matches!(found.literal, Literal::Mail(_)))?;
    let verb = VERBS_OF_MAIL.iter().find(|verb| masked[..mail.start].ends_with(**verb))?;
    let at = mail.start - verb.len();
    let position = at == 0 || masked[..at].ends_with([' ', ',', '.', ':']);
    // `email a@b.io` needs no rewriting.
    let note =
        NOTES.iter().filter(|note| masked[mail.end..].starts_with(**note)).map(|note| note.len()).max();
    let labelled = masked[mail.end..].contains("subject") || masked[mail.end..].contains("body");
    let explicit = ["tell ", "notify ", "let "].contains(verb);
    let plain = ["email ", "mail ", "e-mail ", "send ", "write "].contains(verb);
    if !position || note.is_none() && plain && !masked[mail.end..].starts_with(':') || explicit && !labelled {
        return None;
    }
    let rest = &text[mail.end + note.unwrap_or(0)..];
    let rest = rest.strip_prefix(':').map_or(rest.to_owned(), |rest| format!(",{rest}"));
    Some(format!("{}send an email to {}{rest}", &text[..at], &text[mail.start..mail.end]))
}

/// `Book "Review" on 2026-11-12 …`: a quoted title with a time is an event.
pub(crate) fn event_booking(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
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
pub(crate) fn event_invitation(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let title = literals.iter().find(|found| matches!(found.literal, Literal::Quoted(_)))?;
    let mails: Vec<&LiteralSpan> =
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
pub(crate) fn event_creation(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let at = if masked.starts_with("put a") { 0 } else { masked.find(" put a")? + 1 };
    let object = masked.get(at + 4..)?;
    let words: Vec<&str> = object.split(' ').take(6).collect();
    let event =
        words.iter().skip(1).position(|word| ["event", "meeting", "appointment", "call"].contains(word))?;
    let plain =
        words[1..=event].iter().all(|word| !["in", "on", "into", "to", "about", "for"].contains(word));
    (plain && ["a", "an"].contains(&words[0])).then(|| format!("{}create {}", &text[..at], &text[at + 4..]))
}

/// `The vendor is coming on D from A to B. Put that in the calendar as "X"`: the statement has the time of the event.
pub(crate) fn event_from_statement(text: &str) -> Option<String> {
    const VERBS_OF_ENTRY: [&str; 6] = ["put ", "add ", "enter ", "note ", "save ", "schedule "];
    const OBJECTS: [&str; 3] = ["that ", "this ", "it "];
    const PLACES: [&str; 6] = [
        "in the calendar",
        "in my calendar",
        "to my calendar",
        "to the calendar",
        "into my calendar",
        "on my calendar",
    ];
    const TITLED: [&str; 7] = [
        " as ",
        " under the title ",
        " with the title ",
        " titled ",
        " called ",
        " under ",
        " as the event ",
    ];
    let (literals, masked) = read_masked(text);
    let title = literals.iter().find(|found| matches!(found.literal, Literal::Quoted(_)))?;
    let head = TITLED.iter().find_map(|word| masked[..title.start].strip_suffix(word))?;
    let head = PLACES.iter().find_map(|place| head.strip_suffix(place))?.trim_end();
    let head = OBJECTS.iter().find_map(|object| head.strip_suffix(object.trim_end()))?.trim_end();
    let head = VERBS_OF_ENTRY.iter().find_map(|verb| head.strip_suffix(verb.trim_end()))?.trim_end();
    let head = head.strip_suffix("please").unwrap_or(head).trim_end();
    let head = head.strip_suffix(" so").unwrap_or(head).trim_end();
    let end = head.strip_suffix(['.', ',', ';', ':'])?.len();
    let clause = masked.get(..end)?;
    // The time begins at the first `on` or `from` before a digit.
    let begins = |word: &str| {
        clause
            .match_indices(word)
            .map(|(at, _)| at)
            .find(|at| masked[at + word.len()..].starts_with(|c: char| c.is_ascii_digit() || c == '#'))
    };
    let at = [" on ", " from ", " at "].iter().filter_map(|word| begins(word)).min()?;
    let plain = !clause.contains(['?', '.', ';']) && !crate::rewrite::masked_text::is_open(clause);
    plain.then(|| {
        let (title, rest) = (&text[title.start..title.end], &text[title.end..]);
        format!("create an event {title}{}{rest}", &text[at..end])
    })
}

/// All words of a request to mail the contents of a file. Another word may restrict it.
const FILE_MAIL_WORDS: [&str; 58] = [
    "里面的内容",
    "读取一下",
    "读取",
    "读一下",
    "读出",
    "读",
    "打开",
    "看一下",
    "文件内容",
    "文件",
    "内容",
    "全文",
    "然后",
    "读完后",
    "读完",
    "接着",
    "作为",
    "当作",
    "当成",
    "正文",
    "用邮件",
    "通过邮件",
    "以邮件",
    "邮件",
    "发送给",
    "发送到",
    "发送",
    "发给",
    "发到",
    "发",
    "保存成",
    "保存",
    "存成",
    "存为",
    "存",
    "写成",
    "一封",
    "封",
    "草稿",
    "收件人",
    "主题",
    "标题",
    "里面",
    "它的",
    "的",
    "其",
    "把",
    "将",
    "给",
    "是",
    "为",
    "写",
    "再",
    "并",
    "请",
    "帮我",
    "一份",
    "成",
];

/// 读取 F，把内容用邮件发给 M，主题“S”: the text of a file becomes the body of a mail or a draft.
pub(crate) fn mail_file_content(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let [file, mail, subject] = literals.as_slice() else { return None };
    let kinds = matches!(
        (&file.literal, &mail.literal, &subject.literal),
        (Literal::Path(_), Literal::Mail(_), Literal::Quoted(_))
    );
    let titled = ["主题", "标题", "主题是", "主题为", "标题是", "主题："]
        .iter()
        .any(|label| masked[..subject.start].trim_end().ends_with(label));
    let content = masked[file.end..].contains("内容") || masked[file.end..].contains("全文");
    let draft = masked.contains("草稿");
    let sends = masked[file.end..].contains('发');
    let remainder = FILE_MAIL_WORDS.iter().fold(masked, |text, word| text.replace(word, ""));
    let closed = remainder.chars().all(|c| "#，。,、：: ；".contains(c));
    (kinds && titled && content && closed && draft != sends).then(|| {
        let [file, mail, subject] = [file, mail, subject].map(|found| &text[found.start..found.end]);
        let order = if draft { "save a draft with its contents" } else { "send its contents" };
        format!("Read {file} and {order} to {mail} with the subject {subject}")
    })
}

/// 2026-06-22 下午两点到三点半要谈合同，日历里加一个日程: drops the occasion between the time and the order.
pub(crate) fn drop_occasion(text: &str) -> Option<String> {
    const OCCASIONS: [&str; 7] = ["要", "得", "需要", "我要", "我们要", "有", "约了"];
    const BOUNDS: [&str; 10] = ["别", "不", "如果", "只", "除", "吗", "或", "？", "先", "取消"];
    let (literals, masked) = read_masked(text);
    let comma = masked.find(['，', ','])?;
    let free = !literals.iter().any(|found| found.start < comma && comma < found.end);
    let head = masked.get(..comma)?;
    let order = masked.get(comma..)?;
    let begins = head.starts_with(|c: char| c.is_ascii_digit() || c == '#');
    let (at, _) = OCCASIONS.iter().filter_map(|word| head.find(word).map(|at| (at, word.len()))).min()?;
    let timed = head[..at].trim_end().ends_with(|c: char| c.is_ascii_digit() || "点半刻分钟".contains(c));
    let clause = &head[at..];
    let plain = !clause.contains(|c: char| c.is_ascii_alphanumeric() || c == '#')
        && !BOUNDS.iter().any(|word| clause.contains(word));
    let creates = ["加", "建", "安排", "记"].iter().any(|verb| order.contains(verb))
        && ["日程", "会议", "日历"].iter().any(|kind| order.contains(kind))
        && ["标题", "主题", "名称", "叫"].iter().any(|label| order.contains(label));
    (free && begins && timed && plain && creates).then(|| format!("{}{}", &text[..at], &text[comma..]))
}

/// `Respond to 4471: sounds good`: the number is the ID of a mail.
pub(crate) fn reply_to_id(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
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
    let explicit = rest[digits..].starts_with(':')
        || rest[digits..].starts_with(" with")
        || rest[digits..].starts_with(" saying");
    let all = lead.contains(" all ") || lead.contains("everyone");
    let verb = if all { "Reply to all on mail" } else { "Reply to mail" };
    (digits > 1 && explicit).then(|| format!("{verb} {}", &text[lead.len()..]))
}
