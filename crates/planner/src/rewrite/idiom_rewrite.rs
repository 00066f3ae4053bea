//! Rewrites idioms with an unusual word order: `drop a@b.io a line`, `do a dry run of replacing …`, `Book "X" on …`,
//! `rename A -> B`, 把名字改成 …. Each becomes a plain imperative.

use crate::lexer::literal::Literal;
use crate::lexer::name::has_han;
use crate::rewrite::cell_rewrite::{
    adjacent_cells, cell_format, cell_write, row_in_chinese, row_of_values, tabs_as_sheets,
    workbook_with_sheet,
};
use crate::rewrite::graph_rewrite::{
    entity_fields, entity_in_chinese, entity_of_type, graph_as_location, observation_addition,
    observation_deletion, observed, quote_mixed_names, relation_between, relation_deletion,
    relation_in_chinese,
};
use crate::rewrite::lookup_rewrite::{
    branch_checkout, branch_comparison, commit_changes, file_of_version, folder_description, graph_lookup,
    reorder_base, staging, trailing_repository, web_lookup,
};
use crate::rewrite::masked_text::{free_text, has_word, read_masked};
use crate::rewrite::message_rewrite::{
    drop_occasion, event_booking, event_creation, event_from_statement, event_invitation, mail_file_content,
    mail_to_address, reply_to_id,
};
use crate::rewrite::question_rewrite::{
    double_conversion, noun_before_number, numbered_folder, object_before_comma, reply_to_mentioned_mail,
    repository_status, show_named, unit_conversion, unstage_all, web_search,
};
use crate::rewrite::wish_rewrite::{
    event_field_change, event_wish, file_move, gerund_request, id_after_kind, mail_move, mentioned_location,
    needed_object, passive_question, passive_wish, permission,
};
use crate::selection::verb_class::VERBS;

/// Returns the rewritten request; `None` if nothing changes.
pub(crate) fn plain(text: &str) -> Option<String> {
    let steps: [fn(&str) -> Option<String>; 74] = [
        show_named,
        relation_deletion,
        passive_wish,
        event_wish,
        mail_move,
        object_before_comma,
        observation_addition,
        unstage_all,
        graph_as_location,
        relation_in_chinese,
        quote_mixed_names,
        row_of_values,
        row_in_chinese,
        double_conversion,
        numbered_folder,
        noun_before_number,
        repository_status,
        unit_conversion,
        web_search,
        reply_to_mentioned_mail,
        observed,
        observation_deletion,
        mail_file_content,
        drop_occasion,
        branch_comparison,
        trailing_repository,
        branch_checkout,
        file_move,
        permission,
        adjacent_cells,
        cell_write,
        event_from_statement,
        entity_of_type,
        relation_between,
        entity_in_chinese,
        entity_fields,
        gerund_request,
        event_field_change,
        reorder_base,
        staging,
        commit_changes,
        file_of_version,
        web_lookup,
        graph_lookup,
        folder_description,
        needed_object,
        passive_question,
        mentioned_location,
        id_after_kind,
        polite_question,
        mail_to_address,
        dry_run,
        event_booking,
        arrow,
        query_after_dash,
        time_zone_conversion,
        folder_listing,
        merge_statement,
        participle_to_verb,
        bare_extension,
        leading_location,
        file_rename,
        repeated_noun,
        cell_format,
        reply_to_id,
        event_invitation,
        relation_creation,
        workbook_with_sheet,
        tabs_as_sheets,
        event_creation,
        kind_before_id,
        destination_cell,
        page_fetch,
        topic,
    ];
    let mut result = text.to_owned();
    let mut changed = false;
    for step in steps {
        if let Some(other) = step(&result) {
            result = other;
            changed = true;
        }
    }
    changed.then_some(result)
}

/// `could you list X?`: replaces the question mark of a polite order with a full stop.
fn polite_question(text: &str) -> Option<String> {
    const LEADS: [&str; 12] = [
        "can you ",
        "could you ",
        "would you ",
        "will you ",
        "can u ",
        "could u ",
        "can we ",
        "could we ",
        "please can you ",
        "please could you ",
        "hey can you ",
        "hey could you ",
    ];
    let (_, masked) = read_masked(text);
    let (at, _) = masked.match_indices('?').next()?;
    if masked.matches('?').count() != 1 || at > free_text(&masked) {
        return None;
    }
    let start = masked[..at].rfind(['.', '!', ',']).map_or(0, |mark| mark + 1);
    let sentence = masked[start..at].trim_start();
    let question_words =
        [" how ", " why ", " whether ", " if ", " tell me ", " know ", " explain ", " access", " see "];
    let polite = LEADS.iter().any(|lead| sentence.starts_with(lead))
        && !question_words.iter().any(|word| sentence.contains(word));
    polite.then(|| format!("{}.{}", &text[..at], &text[at + 1..]))
}

/// `do a dry run of replacing A with B`: moves the verb to the front and the manner to the end.
fn dry_run(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let leads = [
        "do a dry run of ",
        "dry run of ",
        "dry-run of ",
        "do a dry-run of ",
        "dry run ",
        "try a dry run of ",
        "a dry run of ",
    ];
    let lead = leads.iter().filter(|lead| masked.starts_with(**lead)).map(|lead| lead.len()).max()?;
    let word = masked[lead..].split(' ').next()?;
    let root = word.strip_suffix("ing")?;
    let verb =
        [root.to_owned(), format!("{root}e")].into_iter().find(|verb| VERBS.english.contains_key(verb))?;
    let rest = text[lead + word.len()..].trim_end_matches(['.', '!']);
    Some(format!("{verb}{rest} as a dry run"))
}

/// `rename A -> B`: replaces an arrow between two names with `to`.
fn arrow(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let verb =
        ["rename", "move", "mv", "change", "replace", "swap"].iter().find(|verb| has_word(&masked, verb));
    let chinese = ["重命名", "改名", "改成", "移动", "替换"].iter().any(|verb| masked.contains(verb));
    let arrow = ["-->", "->", "=>", "→"].iter().find(|arrow| masked.matches(**arrow).count() == 1)?;
    let at = masked.find(arrow).filter(|at| *at < free_text(&masked))?;
    let word = match verb {
        Some(&"replace" | &"swap") => "with",
        Some(_) => "to",
        None if chinese => "到",
        None => return None,
    };
    Some(format!("{} {word} {}", text[..at].trim_end(), text[at + arrow.len()..].trim_start()))
}

/// `search the knowledge graph - kubernetes`: the query follows a dash or a colon.
fn query_after_dash(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let verb = ["search ", "look in ", "check "].iter().find(|verb| masked.starts_with(**verb))?;
    let (at, length) = [" - ", ": ", " – ", " -> "]
        .iter()
        .filter_map(|mark| masked.find(mark).map(|at| (at, mark.len())))
        .min()?;
    let scope = masked.get(verb.len()..at)?;
    let plain = !has_word(scope, "for") && scope.split(' ').count() <= 4 && !scope.contains(['#', '"', ',']);
    let known = ["graph", "memory", "mail", "mailbox", "inbox", "emails", "web", "internet", "calendar"];
    (plain && known.iter().any(|word| has_word(scope, word)) && !has_han(&masked))
        .then(|| format!("search{} for {}", &text[verb.len() - 1..at], &text[at + length..]))
}

/// `09:15 in Lisbon is what in Mumbai?`: a conversion between two time zones.
fn time_zone_conversion(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let marks = [" is what in ", " is what time in ", " would be what in ", " is when in ", " is what for "];
    let (at, mark) = marks.iter().find_map(|mark| masked.find(mark).map(|at| (at, *mark)))?;
    let before = &text[..at];
    let from = before
        .rfind(['.', ',', ';', '!', '…'])
        .map_or(0, |mark| mark + before[mark..].chars().next().map_or(1, char::len_utf8));
    Some(format!(
        "convert {} to {}",
        before[from..].trim(),
        text[at + mark.len()..].trim_end_matches(['?', ' '])
    ))
}

/// `what's in a/b?`: lists a folder.
fn folder_listing(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    const LEADS: [&str; 15] = [
        "what files are in ",
        "which files are in ",
        "what files are there in ",
        "which files are there in ",
        "what files do i have in ",
        "which files do we have in ",
        "what is there in ",
        "what's stored in ",
        "what's in ",
        "whats in ",
        "what is in ",
        "what's inside ",
        "what is inside ",
        "what have we got in ",
        "what do we have in ",
    ];
    const KINDS: [&str; 4] = ["the folder ", "the directory ", "folder ", "directory "];
    const SHOWN: [&str; 6] = ["can you ", "could you ", "please ", "show me ", "tell me ", "list "];
    let mut start = 0;
    while let Some(word) = SHOWN.iter().find(|word| masked[start..].starts_with(**word)) {
        start += word.len();
    }
    let lead = LEADS.iter().find(|lead| masked[start..].starts_with(**lead))?;
    start += lead.len();
    let kind = KINDS.iter().find(|kind| masked[start..].starts_with(**kind)).map_or(0, |kind| kind.len());
    let found = literals.iter().find(|found| found.start == start + kind)?;
    let folder = match &found.literal {
        Literal::Code(code) => code.contains('/') && !code.contains('.'),
        Literal::Path(path) => crate::lexer::implied::is_bare(path) || path.ends_with('/') || kind > 0,
        _ => false,
    };
    let rest = text[found.end..].trim_start();
    let ends = rest.is_empty() || rest.starts_with(['?', '.', '!']);
    (folder && ends).then(|| {
        format!(
            "list the directory {}{}",
            &text[found.start..found.end],
            text[found.end..].replacen('?', ".", 1)
        )
    })
}

/// `X should be called Y, rename it`: merges a statement and its order.
fn merge_statement(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let statement_marks = [
        " should be called ",
        " should be named ",
        " should be renamed ",
        " ought to be called ",
        " needs to be called ",
    ];
    let mark = statement_marks.iter().find(|mark| masked.contains(**mark))?;
    let after = masked.find(mark)? + mark.len();
    let comma = after + masked[after..].rfind([',', ';', '.', '-']).filter(|at| *at > 0)?;
    let tail = masked[comma + 1..].trim().trim_end_matches(['.', '?', '!', ' ']);
    let tail = ["so ", "please ", "can you ", "could you ", "would you ", "can u ", "just "]
        .iter()
        .fold(tail, |tail, lead| tail.strip_prefix(lead).unwrap_or(tail));
    [
        "rename it",
        "rename it please",
        "change it",
        "fix it",
        "fix that",
        "change that",
        "do that",
        "rename that",
        "sort it",
        "sort that",
    ]
    .contains(&tail)
    .then(|| text[..comma].trim_end().to_owned())
}

/// `get the staged changes in X committed as …`: moves the verb to the front.
fn participle_to_verb(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let leads = ["get ", "please get ", "can you get ", "could you get ", "please have ", "go get "];
    let lead = leads.iter().filter(|lead| masked.starts_with(**lead)).map(|lead| lead.len()).max()?;
    let mut at = lead;
    for word in masked[lead..].split(' ') {
        let start = at;
        at += word.len() + 1;
        let Some(root) = word.strip_suffix("ed").filter(|root| root.len() > 2 && start > lead) else {
            continue;
        };
        let shorter = &root[..root.len() - 1];
        let mut forms = vec![root.to_owned(), format!("{root}e")];
        if shorter.ends_with(|c: char| root.ends_with(c)) {
            forms.push(shorter.to_owned());
        }
        let named =
            masked[..start].trim_end().ends_with(" the") || ["staged", "unstaged", "merged"].contains(&word);
        if let Some(verb) = forms.into_iter().find(|verb| VERBS.english.contains_key(verb)).filter(|_| !named)
        {
            let object = text[lead..start].trim();
            return (!object.is_empty()).then(|| format!("{verb} {object}{}", &text[start + word.len()..]));
        }
    }
    None
}

/// 所有的 .pptx: a bare extension means all files with it.
fn bare_extension(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let free = |at: usize| !literals.iter().any(|found| found.start < at && at < found.end);
    // `find all PDF files under X`: the name of a file format means its extension.
    let is_lookup = ["find ", "list ", "search ", "locate ", "show ", "找", "列", "搜"]
        .iter()
        .any(|word| masked.contains(word));
    let folder = literals
        .iter()
        .any(|found| matches!(&found.literal, Literal::Path(path) if crate::lexer::implied::is_bare(path)));
    let kind = ["pdf file", "pdf document", "pdf 文件", "pdf文件", "pdf 文档"]
        .iter()
        .find_map(|kind| masked.find(kind))
        .filter(|at| {
            is_lookup && folder && !masked[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '.')
        });
    if let Some(at) = kind {
        return Some(format!("{} *.pdf{}", text[..at].trim_end(), &text[at + 3..]));
    }
    masked.match_indices('.').find_map(|(at, _)| {
        let ending = &masked[at + 1..];
        let ending = &ending[..ending.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(ending.len())];
        let before = text[..at].chars().next_back();
        let opens = before.is_some_and(|c| c == ' ' || "的有个找“\"".contains(c));
        (opens
            && free(at)
            && crate::lexer::file_extension::is_extension(ending)
            && masked[at + 1 + ending.len()..].chars().next().is_none_or(|c| c != '.' && c != '/'))
        .then(|| format!("{} *{}", text[..at].trim_end(), &text[at..]))
    })
}

/// `On the node X, get rid of …`: moves a leading location after the order.
pub(crate) fn leading_location(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let lead = ["on ", "from ", "for "].iter().find(|lead| masked.starts_with(**lead))?;
    let comma = masked.find(", ")?;
    let head = masked.get(lead.len()..comma)?;
    let rest = masked.get(comma + 2..)?;
    let words: Vec<&str> = rest.split(' ').take(3).collect();
    let verb = (1..=words.len()).any(|count| VERBS.english.contains_key(&words[..count].join(" ")));
    let plain = head.split(' ').count() <= 5
        && ["node", "entity", "event", "email", "mail", "branch"].iter().any(|kind| has_word(head, kind));
    (plain && verb && comma < free_text(&masked) && !head.contains(|c: char| c.is_ascii_digit())).then(|| {
        format!("{} {}{}", text[comma + 2..].trim_end_matches(['.', '!']), lead, &text[lead.len()..comma])
    })
}

/// a.md 这名字看不懂，改成 b.md: a remark about a file's name, followed by a new name, is a rename.
fn file_rename(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let [old, new] = literals.as_slice() else { return None };
    let paths = matches!((&old.literal, &new.literal), (Literal::Path(_), Literal::Path(_)));
    let between = masked.get(old.end..new.start)?;
    let verbs = ["改成", "换成", "改为", "改叫", "叫", "改名", "改名为", "改名叫", "换个名字叫"];
    let verb = verbs.iter().any(|verb| between.trim_end().ends_with(verb));
    let name = ["名字", "文件名", "名称", "这名"].iter().any(|word| between.contains(word));
    let comma = between.contains(['，', ',']);
    let plain = masked[new.end..].trim_matches(['。', '吧', ' ', '！']).is_empty()
        && masked[..old.start].trim_matches(['把', '将', ' ']).is_empty();
    (paths
        && verb
        && name
        && comma
        && plain
        && !["不", "别", "吗", "如果"].iter().any(|word| between.replace("看不懂", "").contains(word)))
    .then(|| format!("把 {} 重命名为 {}", &text[old.start..old.end], &text[new.start..new.end]))
}

/// ID 为 tr-66 的邮件, 编号为 1093 的那封广告邮件, 5567 号邮件: moves the kind before the ID.
fn kind_before_id(text: &str) -> Option<String> {
    const LEADS: [&str; 8] = ["id 为", "id为", "id 是", "id是", "编号为", "编号是", "编号", "id"];
    const KINDS: [&str; 7] = ["邮件", "日程", "事件", "会议", "活动", "日历事件", "邀请"];
    let (literals, masked) = read_masked(text);
    let name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    // 5567 号邮件 is an ID; 12 号邮件 and 12 号会议 may contain a day of the month.
    if let Some(at) = text.find("号邮件") {
        let kind = "邮件";
        let head = text[..at].trim_end();
        let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let start = head.len() - digits;
        let free = !literals.iter().any(|found| found.start <= at && at < found.end)
            && !head[..start].ends_with(|c: char| c.is_ascii_alphanumeric() || "-_.月".contains(c));
        return (digits > 2 && free).then(|| {
            let rest = &text[at + "号".len() + kind.len()..];
            format!("{}{kind} {} {}", &text[..start], &head[start..], rest.trim_start())
        });
    }
    let lead = LEADS
        .iter()
        .filter_map(|lead| masked.find(lead).map(|at| (at, at + lead.len())))
        .min_by_key(|(at, end)| (*at, std::cmp::Reverse(*end)))?;
    let rest = text[lead.1..].trim_start();
    let from = text.len() - rest.len();
    let end = from + rest.find(|c: char| !name(c)).unwrap_or(rest.len());
    let has_digits = text[from..end].contains(|c: char| c.is_ascii_digit());
    let after = text[end..].trim_start().strip_prefix('的')?.trim_start();
    let after = ["那封", "这封", "那个", "这个", "那条", "那场"]
        .iter()
        .find_map(|word| after.strip_prefix(word))
        .unwrap_or(after);
    // 那封广告邮件: an adjective before the kind is ignored.
    let (kind, skipped) = KINDS.iter().find_map(|kind| {
        let at = after.find(kind)?;
        let word = &after[..at];
        let plain = ["", "广告", "垃圾", "推广", "通知", "旧", "老"].contains(&word);
        plain.then_some((*kind, at))
    })?;
    has_digits
        .then(|| format!("{}{kind} {} {}", &text[..lead.0], &text[from..end], &after[skipped + kind.len()..]))
}

/// 从 B3 开始放: the cell is the destination, not the source.
fn destination_cell(text: &str) -> Option<String> {
    let (literals, _) = read_masked(text);
    literals.iter().filter(|found| matches!(found.literal, Literal::Cells(_))).find_map(|found| {
        let before = text[..found.start].trim_end().strip_suffix('从')?;
        let after = text[found.end..].trim_start().strip_prefix("开始")?;
        let rest = ["放", "贴", "粘贴", "粘", "摆"].iter().find_map(|verb| after.strip_prefix(verb))?;
        Some(format!("{before}放到 {}{rest}", &text[found.start..found.end]))
    })
}

/// 抓 https://…: fetches a page.
fn page_fetch(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let url = literals.iter().find(|found| matches!(found.literal, Literal::Url(_)))?;
    let head = masked[..url.start].trim_end();
    if let Some(before) = head.strip_suffix("download") {
        let opens = (before.is_empty() || before.ends_with(' ')) && literals.len() == 1;
        return opens.then(|| format!("{}fetch {}", &text[..before.len()], &text[url.start..]));
    }
    let verb = ["抓", "扒", "拿", "取", "爬"].iter().find(|verb| head.ends_with(**verb))?;
    let at = head.len() - verb.len();
    let opens = text[..at]
        .chars()
        .next_back()
        .is_none_or(|c| !crate::lexer::token::is_han(c) || "我请把下先再".contains(c));
    opens.then(|| format!("{}抓取 {}", &text[..at], &text[url.start..]))
}

/// data/raw 和 data/clean 两个目录，都给我建: the topic at the front is the object of the verb after the comma.
fn topic(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let comma = masked.find(['，', ','])?;
    let width = masked[comma..].chars().next()?.len_utf8();
    let (head, order) = (masked.get(..comma)?, masked.get(comma + width..)?);
    let mut verb = order.trim().trim_end_matches(['。', '！', '吧', '!', '.', ' ']);
    while let Some(rest) =
        ["都", "全部", "全", "给我", "帮我", "一起", "麻烦", "请", "你", "统统", "一并", "也"]
            .iter()
            .find_map(|word| verb.strip_prefix(word))
    {
        verb = rest.trim_start();
    }
    let word_matches =
        crate::lexer::lexicon::word_matches(head, &crate::lexer::token::tokenize(head), &|_| false);
    let has_verb = word_matches.iter().any(|word_match| !word_match.meaning.verbs.is_empty());
    let known = VERBS.chinese.contains_key(verb.trim_end_matches("一下").trim_end_matches('了'));
    // Only the noun for its kind may follow the last name of the topic.
    let last = literals.iter().map(|found| found.end).filter(|end| *end <= comma).max()?;
    let kind = head.get(last..)?.trim().trim_start_matches(|c: char| "这那两三四几个张封条".contains(c));
    let inside = ["", "目录", "文件夹", "文件", "表", "工作表", "邮件", "日程", "实体", "节点", "分支"]
        .contains(&kind.trim());
    let bounds = ["不", "别", "如果", "除", "只", "吗"].iter().any(|word| masked.contains(word));
    (known && !has_verb && inside && !bounds && has_han(verb))
        .then(|| format!("{verb} {}", text[..comma].trim()))
}

/// `delete email 12 and email 13`: removes the repeated noun.
fn repeated_noun(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    ["email", "mail", "message", "event", "meeting", "邮件", "日程"].iter().find_map(|kind| {
        for joint in [" and ", ", ", ", and ", "和", "、", " 和 "] {
            let Some(at) = lower.find(&format!("{joint}{kind} ")) else { continue };
            let first = lower[..at].find(&format!("{kind} "))? + kind.len() + 1;
            let name = lower.get(first..at)?;
            let plain =
                name.contains(|c: char| c.is_ascii_digit()) && name.len() < 60 && !name.contains(". ");
            let next = lower.get(at + joint.len() + kind.len() + 1..)?.trim_start();
            let numbered = next
                .split(|c: char| c.is_whitespace() || ",，、和".contains(c))
                .next()?
                .contains(|c: char| c.is_ascii_digit());
            return (plain
                && numbered
                && !name.contains("to ")
                && !name.contains("删")
                && name.split(' ').count() < 3)
                .then(|| {
                    format!("{}{joint}{}", &text[..at], text[at + joint.len() + kind.len()..].trim_start())
                });
        }
        None
    })
}

/// `Link Anna Schmidt to Blue Whale with works_on`: creates a relation in the knowledge graph.
fn relation_creation(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let verb = ["link ", "connect ", "relate "].iter().find(|verb| masked.starts_with(**verb))?;
    let named = text[verb.len()..].starts_with(char::is_uppercase);
    let [relation] = literals.as_slice() else { return None };
    let code = matches!(&relation.literal, Literal::Code(code) if code.contains('_'));
    let word =
        [" with ", " as ", " via ", " by "].iter().find(|word| masked[..relation.start].ends_with(**word))?;
    let known = masked.contains("graph") || masked.contains("relation");
    (named && code && !known && masked.contains(" to ")).then(|| {
        let head = &text[..relation.start - word.len()];
        format!(
            "In the knowledge graph relate{} with relation type {}",
            &head[verb.len() - 1..],
            &text[relation.start..relation.end]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_idioms_as_imperatives() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(plain(text).as_deref(), expect, "{text}");
        check("drop kim@b.io a line, subject \"Hi\"", Some("send an email to kim@b.io, subject \"Hi\""));
        check(
            "do a dry run of replacing \"a\" with \"b\" in c.md",
            Some("replace \"a\" with \"b\" in c.md as a dry run"),
        );
        check(
            "Book \"Review\" on 2026-11-12 from 10:00 to 11:00",
            Some("create an event \"Review\" on 2026-11-12 from 10:00 to 11:00"),
        );
        check("rename tab Sheet1 -> Overview in p.xlsx", Some("rename tab Sheet1 to Overview in p.xlsx"));
        check("search the knowledge graph - kubernetes", Some("search the knowledge graph for kubernetes"));
        check(
            "get the staged changes in /srv/a committed as \"x\"",
            Some("commit the staged changes in /srv/a as \"x\""),
        );
        check("could you list /srv/a?", Some("could you list /srv/a."));
        check("could you tell me how to delete /srv/a?", None);
        check("docs/手册.md 这名字太长，改成 docs/guide.md", Some("把 docs/手册.md 重命名为 docs/guide.md"));
        check("docs/手册.md 这名字别动，改成 docs/guide.md", None);
    }
}
