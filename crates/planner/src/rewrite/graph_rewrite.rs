//! Rewrites phrases about the knowledge graph into plain orders: `Add X to the knowledge graph as an entity of type T`,
//! `the relation saying that A uses B`, 把“X”作为新实体加进知识图谱.

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::lexer::name::has_han;
use crate::rewrite::masked_text::{free_text, has_word, is_open, read_masked};

/// Verbs that add something to the graph.
const ADDS: [&str; 9] =
    ["add ", "put ", "record ", "store ", "save ", "register ", "enter ", "create ", "include "];
/// Names of the graph after a preposition.
const GRAPHS: [&str; 9] = [
    " to the knowledge graph",
    " in the knowledge graph",
    " into the knowledge graph",
    " to the graph",
    " in the graph",
    " into the graph",
    " to my knowledge graph",
    " to our knowledge graph",
    " in our knowledge graph",
];
/// Words between a name and its type.
const AS_TYPES: [&str; 8] = [
    " as a new entity of type ",
    " as an entity of type ",
    " as an entity of the type ",
    " as a new entity with the type ",
    " as an entity with the type ",
    " as entity of type ",
    " as a node of type ",
    " as a new node of type ",
];
/// Maximum length of a name in words.
const MAX_NAME_WORDS: usize = 5;

/// `Add X to the knowledge graph as an entity of type T, with the observation …`: creates an entity.
pub(crate) fn entity_of_type(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    if is_open(&masked) || has_han(&masked) {
        return None;
    }
    if let Some(other) = type_first(text, &masked).or_else(|| kind_called(text, &masked)) {
        return Some(other);
    }
    let verb = masked.find(|c: char| !c.is_whitespace()).unwrap_or(0);
    let start = masked[verb..].strip_prefix("please ").map_or(verb, |_| verb + "please ".len());
    let word = ADDS.iter().find(|word| masked[start..].starts_with(**word))?;
    let from = start + word.len();
    let (at, lead) = AS_TYPES.iter().find_map(|lead| masked.find(lead).map(|at| (at, *lead)))?;
    let (graph, place) = first_graph(&masked)?;
    let kind = at + lead.len();
    let rest = masked.get(kind..)?;
    let end = kind + rest.find([',', '.', ' ', ';']).unwrap_or(rest.len());
    let name = text.get(from..at.min(graph))?;
    let between = match graph < at {
        // `add X to the graph as …`
        true => masked.get(graph + place.len()..at)?,
        // `add X as … to the graph`
        false => masked.get(end..graph)?,
    };
    let tail = text.get(end.max(graph + place.len())..)?;
    (is_name(name) && between.is_empty() && end > kind).then(|| created(name, &text[kind..end], tail))
}

/// `As a new entity of type T, put X into the knowledge graph with …`.
fn type_first(text: &str, masked: &str) -> Option<String> {
    let lead = AS_TYPES.iter().map(|lead| lead.trim_start()).find(|lead| masked.starts_with(*lead))?;
    let (kind, rest) = masked[lead.len()..].split_once(", ")?;
    let start = text.len() - rest.len();
    let rest = rest.strip_prefix("please ").unwrap_or(rest);
    let word = ADDS.iter().find(|word| rest.starts_with(**word))?;
    let from = text.len() - rest.len() + word.len();
    let (graph, place) = first_graph(masked).filter(|(graph, _)| *graph > start)?;
    let name = text.get(from..graph)?;
    let plain = !kind.is_empty() && !kind.contains(' ');
    (is_name(name) && plain)
        .then(|| created(name, &text[lead.len()..lead.len() + kind.len()], &text[graph + place.len()..]))
}

/// `Add a person called X to the knowledge graph, with the observation …`.
fn kind_called(text: &str, masked: &str) -> Option<String> {
    const OTHERS: [&str; 10] =
        ["entity", "node", "relation", "observation", "new", "branch", "event", "sheet", "file", "folder"];
    let start = masked.strip_prefix("please ").map_or(0, |_| "please ".len());
    let word = ADDS.iter().find(|word| masked[start..].starts_with(**word))?;
    let rest = &masked[start + word.len()..];
    let article = ["a new ", "an ", "a "].iter().find(|article| rest.starts_with(**article))?;
    let kind = rest[article.len()..].split(' ').next()?;
    let called = ["called ", "named "]
        .iter()
        .find(|called| rest[article.len() + kind.len()..].trim_start().starts_with(**called))?;
    let from = start + word.len() + article.len() + kind.len() + 1 + called.len();
    let (graph, place) = first_graph(masked)?;
    let name = text.get(from..graph)?;
    let tail = text.get(graph + place.len()..)?;
    // Without an observation, other rules read the order as it is.
    let observed = has_word(&tail.to_ascii_lowercase(), "observation")
        || has_word(&tail.to_ascii_lowercase(), "observations");
    let plain = !OTHERS.contains(&kind) && kind.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_name(name) && plain && observed).then(|| created(name, kind, tail))
}

fn first_graph(masked: &str) -> Option<(usize, &'static str)> {
    let found = GRAPHS.iter().filter_map(|place| masked.find(place).map(|at| (at, *place)));
    found.min_by_key(|(at, place)| (*at, std::cmp::Reverse(place.len())))
}

/// Whether a text is a name: quoted, or few words that begin with a capital letter or contain a digit.
fn is_name(name: &str) -> bool {
    let quoted = name.len() > 2 && name.starts_with(['"', '\'', '“']) && name.ends_with(['"', '\'', '”']);
    let words: Vec<&str> = name.split(' ').collect();
    let capital = |word: &&str| {
        word.starts_with(char::is_uppercase) || word.chars().all(|c| c.is_ascii_digit()) && !word.is_empty()
    };
    quoted && !name[1..name.len() - 1].contains(['"', '“'])
        || words.len() <= MAX_NAME_WORDS && words.iter().all(capital) && !name.contains([',', ';', ':'])
}

fn created(name: &str, kind: &str, tail: &str) -> String {
    let tail = tail.trim_start_matches([',', ' ']).trim_end_matches(['.', '!', ' ']);
    let tail = ["and ", "with "].iter().find_map(|word| tail.strip_prefix(word)).unwrap_or(tail);
    let gap = if tail.is_empty() { "" } else { " with " };
    format!("In the knowledge graph create an entity named {name} of type {kind}{gap}{tail}")
}

/// `the relation saying that A uses B`, `a relation 'works for' between A and B`, `that A "maintains" B`.
pub(crate) fn relation_between(text: &str) -> Option<String> {
    const SAYING: [&str; 6] = [
        " relation saying that ",
        " relation that says that ",
        " relation stating that ",
        " relation which says that ",
        " relationship saying that ",
        " relation saying ",
    ];
    let (literals, masked) = read_masked(text);
    if has_han(&masked) {
        return None;
    }
    if let Some((at, words)) = SAYING.iter().find_map(|words| masked.find(words).map(|at| (at, *words))) {
        return Some(format!("{} relation {}", &text[..at], &text[at + words.len()..]));
    }
    let quoted = |found: &&LiteralSpan| matches!(found.literal, Literal::Quoted(_));
    // `the relation 'works for' between A and B`
    let between = literals.iter().filter(quoted).find(|found| {
        ["relation ", "relationship "].iter().any(|kind| masked[..found.start].ends_with(kind))
            && masked[found.end..].starts_with(" between ")
    });
    if let Some(found) = between {
        let start = found.end + " between ".len();
        let joint = start + masked[start..].find(" and ")?;
        return Some(format!(
            "{} from {} to {}",
            &text[..found.end],
            &text[start..joint],
            &text[joint + " and ".len()..]
        ));
    }
    stated(text, &masked, &literals)
}

/// `Record in the knowledge graph that A "maintains" B`: a quoted verb between two names.
fn stated(text: &str, masked: &str, literals: &[LiteralSpan]) -> Option<String> {
    let verbs = ["record ", "note ", "remember ", "add ", "store ", "save ", "put "];
    let start = masked.strip_prefix("please ").map_or(0, |_| "please ".len());
    verbs.iter().find(|verb| masked[start..].starts_with(**verb))?;
    let graph = masked.find("graph that ")? + "graph that ".len();
    let found =
        literals.iter().find(|found| found.start > graph && matches!(found.literal, Literal::Quoted(_)))?;
    let from = text.get(graph..found.start)?.trim();
    let rest = text.get(found.end..)?;
    let end = rest.find(['.', ',', ';']).unwrap_or(rest.len());
    let to = rest[..end].trim();
    let tail = rest[end..].trim_end_matches(['.', ' ', '!']);
    let relation = &text[found.start..found.end];
    (is_name(from) && is_name(to) && !is_open(&masked[..found.start]))
        .then(|| format!("In the knowledge graph create the relation {relation} from {from} to {to}{tail}"))
}

/// 把“X”作为新实体加进知识图谱，类型是“T”，观察写“O”: creates an entity.
pub(crate) fn entity_in_chinese(text: &str) -> Option<String> {
    const AS: [&str; 8] = [
        "作为新实体",
        "作为一个新实体",
        "作为实体",
        "作为一个实体",
        "作为新的实体",
        "作为新节点",
        "作为一个新节点",
        "作为节点",
    ];
    const INTO: [&str; 16] = [
        "加进知识图谱",
        "加入知识图谱",
        "加到知识图谱",
        "添加到知识图谱",
        "放进知识图谱",
        "存进知识图谱",
        "录入知识图谱",
        "记入知识图谱",
        "记到知识图谱",
        "写进知识图谱",
        "写入知识图谱",
        "加进图谱",
        "加入图谱",
        "加到图谱",
        "录入图谱",
        "存入知识图谱",
    ];
    let (literals, masked) = read_masked(text);
    let first = literals.first().filter(|found| matches!(found.literal, Literal::Quoted(_)))?;
    let start = ["把", "将"].iter().find_map(|word| {
        let head = masked[..first.start].trim_end();
        head.strip_suffix(word).map(str::len)
    })?;
    let rest = masked[first.end..].trim_start();
    let rest = AS.iter().find_map(|word| rest.strip_prefix(word))?;
    let rest = INTO.iter().find_map(|word| rest.strip_prefix(word))?;
    let rest = rest.trim_start_matches(['里', '中', '面']);
    let tail = &text[text.len() - rest.len()..];
    Some(format!("{}在知识图谱里新建实体{}{tail}", &text[..start], &text[first.start..first.end]))
}

/// ，类型写“服务”，观察写“由平台组负责”: drops the verb between the label of an entity's part and its quoted value.
pub(crate) fn entity_fields(text: &str) -> Option<String> {
    const LABELS: [&str; 5] = ["类型", "观察", "实体类型", "观察内容", "关系类型"];
    const BETWEEN: [&str; 9] = ["写成", "写上", "填写", "写", "填", "设为", "设成", "是", "为"];
    let (literals, masked) = read_masked(text);
    if !["实体", "节点", "图谱"].iter().any(|word| masked.contains(word)) {
        return None;
    }
    let mut result = text.to_owned();
    let mut changed = false;
    for found in literals.iter().rev().filter(|found| matches!(found.literal, Literal::Quoted(_))) {
        let head = &masked[..found.start];
        let Some(shorter) = BETWEEN.iter().find_map(|word| head.strip_suffix(word)) else { continue };
        let shorter = shorter.trim_end_matches(['都', '均']);
        if LABELS.iter().any(|label| shorter.ends_with(label)) {
            result.replace_range(shorter.len()..found.start, "");
            changed = true;
        }
    }
    (changed && free_text(&masked) >= masked.len()).then_some(result)
}

/// `knowledge graph, X: add the observation …`, 知识图谱：删除实体 …: the graph before a colon is a place.
pub(crate) fn graph_as_location(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    if let Some(rest) = ["知识图谱：", "知识图谱:", "图谱："].iter().find_map(|lead| text.strip_prefix(lead))
    {
        return Some(format!("在知识图谱里，{}", rest.trim_start()));
    }
    let lead = ["knowledge graph, ", "in the knowledge graph, ", "graph, "]
        .iter()
        .find(|lead| masked.starts_with(**lead))?;
    let colon = lead.len() + masked[lead.len()..].find(": ")?;
    let name = text.get(lead.len()..colon)?;
    let order = text.get(colon + 2..)?.trim_end_matches(['.', '!', ' ']);
    let lower = order.to_ascii_lowercase();
    let adds = ["add the observation ", "add observation ", "add an observation ", "note "]
        .iter()
        .any(|verb| lower.starts_with(verb));
    (is_name(name) && adds).then(|| format!("In the knowledge graph {order} to {name}"))
}

/// 再建一条关系：从 A 到 B，类型“T”: the ends of a relation precede its noun.
pub(crate) fn relation_in_chinese(text: &str) -> Option<String> {
    let (at, label) = ["关系：从", "关系:从", "关系，从"]
        .iter()
        .find_map(|label| text.find(label).map(|at| (at, *label)))?;
    let rest = &text[at + label.len()..];
    let (ends, tail) = rest.split_once('，')?;
    let plain = ends.contains('到') && ends.chars().count() <= 40 && !ends.contains(['。', '；']);
    let kind =
        ["类型", "关系类型", "关系是", "关系为"].iter().any(|kind| tail.trim_start().starts_with(kind));
    (plain && kind).then(|| format!("{}从{} 的关系，{tail}", &text[..at], ends.trim_end()))
}

/// 把实体 打印机HP-2 和 打印机HP-3 删掉: quotes names of Chinese and Latin letters between blanks.
pub(crate) fn quote_mixed_names(text: &str) -> Option<String> {
    let at = ["实体 ", "节点 "].iter().find_map(|kind| text.find(kind).map(|at| at + kind.len()))?;
    let rest = &text[at..];
    let mixed = |word: &str| {
        word.starts_with(crate::lexer::token::is_han)
            && word.contains(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(|c| crate::lexer::token::is_han(c) || c.is_ascii_alphanumeric() || c == '-')
            && word.chars().count() <= 16
    };
    let words: Vec<&str> = rest.split(' ').collect();
    let [first, "和" | "与", second, ..] = words.as_slice() else { return None };
    (mixed(first) && mixed(second)).then(|| {
        let end = at + first.len() + second.len() + words[1].len() + 2;
        format!("{}“{first}”和“{second}”{}", text[..at].trim_end(), &text[end..])
    })
}

/// 把“O”这条观察记到知识图谱的实体 N 上: adds an observation.
pub(crate) fn observation_addition(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let value = literals.first().filter(|found| matches!(found.literal, Literal::Quoted(_)))?;
    let head = masked[..value.start].trim_end();
    let start = ["把", "将"].iter().find_map(|word| head.strip_suffix(word)).map(str::len)?;
    let rest = ["这条观察", "这一条观察", "作为观察"]
        .iter()
        .find_map(|kind| masked[value.end..].strip_prefix(kind))?;
    let rest = ["记到", "加到", "添加到", "写到", "补到", "记在", "加在"]
        .iter()
        .find_map(|verb| rest.strip_prefix(verb))?;
    let rest = ["知识图谱的", "知识图谱里的", "图谱里的", "知识图谱中的", ""]
        .iter()
        .find_map(|place| rest.strip_prefix(place))?;
    let rest = ["实体", "节点"].iter().find_map(|kind| rest.strip_prefix(kind))?;
    let name = text[text.len() - rest.len()..].trim().trim_end_matches(['。', '！', ' ']);
    let name = ["上", "下", "里"].iter().find_map(|word| name.strip_suffix(word)).unwrap_or(name).trim();
    let plain = (2..=20).contains(&name.chars().count()) && !name.contains(['，', '。', '和', '、']);
    plain.then(|| {
        format!("{}给知识图谱的实体 {name} 加一条观察{}", &text[..start], &text[value.start..value.end])
    })
}

/// 知识图谱中 A 到 B 的“R”关系不成立了，请删除: deletes the relation that the statement is about.
pub(crate) fn relation_deletion(text: &str) -> Option<String> {
    let at = text.find("”关系")? + "”关系".len();
    let (state, order) = text[at..].split_once(['，', ','])?;
    let head = ["知识图谱中", "知识图谱里", "图谱里", "图谱中"]
        .iter()
        .find_map(|place| text[..at].strip_prefix(place))?;
    let gone =
        ["不成立了", "已经不成立", "过时了", "已经过时", "不对了", "没有了", "不存在了", "错了", "作废了"]
            .contains(&state.trim());
    let order = order.trim_matches(['请', '帮', '我', '把', '它', '。', ' ', '吧', '掉']);
    (gone && ["删除", "删", "移除", "去"].contains(&order) && head.contains('到'))
        .then(|| format!("从知识图谱里删除{head}"))
}

/// “X”这个实体再加两条观察：…: the owner of new observations becomes the object of 给.
pub(crate) fn observed(text: &str) -> Option<String> {
    const KINDS: [&str; 6] = ["这个实体", "这个节点", "那个实体", "这一实体", "实体", "节点"];
    const LEADS: [&str; 8] = ["，", ",", " ", "请", "帮我", "再", "给", "麻烦"];
    const ADDED: [&str; 11] =
        ["补充上", "补充", "添加", "追加", "新增", "增加", "加上", "补上", "记上", "加", "补"];
    const COUNTS: [&str; 7] = ["一条", "两条", "三条", "四条", "几条", "条", "一个"];
    const TEXTS: [&str; 5] = ["观察", "信息", "备注", "说明", "记录"];
    let (literals, masked) = read_masked(text);
    let name = literals.first().filter(|found| matches!(found.literal, Literal::Quoted(_)))?;
    let head = masked[..name.start].trim_end();
    let places = [
        "",
        "知识图谱里",
        "知识图谱里的",
        "图谱里",
        "图谱里的",
        "知识图谱中",
        "知识图谱中的",
        "在知识图谱里",
        "知识图谱里面",
    ];
    let mut rest = masked[name.end..].trim_start();
    rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    while let Some(shorter) = LEADS.iter().find_map(|lead| rest.strip_prefix(lead)) {
        rest = shorter;
    }
    rest = ADDED.iter().find_map(|verb| rest.strip_prefix(verb))?;
    let count = COUNTS.iter().find(|count| rest.starts_with(**count))?;
    rest = rest[count.len()..].trim_start();
    rest = TEXTS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let value = rest.trim_start();
    let has_value = value.starts_with(['：', ':', '#']);
    (places.contains(&head) && has_value).then(|| {
        let (name, value) = (&text[name.start..name.end], &text[text.len() - value.len()..]);
        format!("给知识图谱里的实体{name}加{count}观察{value}")
    })
}

/// 实体“A”有一条观察“B”已经过时，请删掉这条观察: deletes the observation that the statement is about.
pub(crate) fn observation_deletion(text: &str) -> Option<String> {
    const OWNS: [&str; 8] = [
        "有一条观察",
        "有条观察",
        "的观察",
        "的一条观察",
        "里的观察",
        "下的观察",
        "里有一条观察",
        "上的观察",
    ];
    const DELETES: [&str; 6] = ["删掉", "删除", "去掉", "移除", "删了", "删去"];
    const AROUND: [&str; 18] = [
        "请",
        "帮我",
        "麻烦",
        "把",
        "将",
        "从",
        "知识图谱",
        "图谱",
        "里面",
        "里",
        "中",
        "这条观察",
        "这条",
        "它",
        "吧",
        "一下",
        "掉",
        "给",
    ];
    const BOUNDS: [&str; 12] =
        ["别", "不能", "保留", "只", "如果", "除", "吗", "等", "先", "重要", "要留", "？"];
    const MAX_PREDICATE_CHARS: usize = 12;
    let (literals, masked) = read_masked(text);
    let [name, value] = literals.as_slice() else { return None };
    let quoted = [name, value].iter().all(|found| matches!(found.literal, Literal::Quoted(_)));
    let kind = ["实体", "节点"].iter().any(|kind| masked[..name.start].ends_with(kind));
    let between = masked.get(name.end..value.start)?.trim();
    let (state, order) = masked[value.end..].split_once(['，', ',', '。'])?;
    let trimmed = order.trim_matches(['。', ' ', '！', '!', '，']);
    let verb = DELETES.iter().find(|verb| trimmed.contains(**verb))?;
    let remainder = AROUND.iter().fold(trimmed.replacen(verb, "", 1), |text, word| text.replace(word, ""));
    let plain = state.chars().count() <= MAX_PREDICATE_CHARS
        && !state.contains(|c: char| c.is_ascii_alphanumeric())
        && !BOUNDS.iter().any(|word| state.contains(word));
    (quoted && kind && OWNS.contains(&between) && plain && remainder.is_empty()).then(|| {
        let (name, value) = (&text[name.start..name.end], &text[value.start..value.end]);
        format!("从知识图谱里删除实体{name}的观察{value}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(step: fn(&str) -> Option<String>, text: &str, expect: Option<&str>) {
        assert_eq!(step(text).as_deref(), expect, "{text}");
    }

    #[test]
    fn rewrites_entity_creation_with_type() {
        check(
            entity_of_type,
            "Add Redis Cluster to the knowledge graph as an entity of type service, with the observation \"x y\".",
            Some(
                "In the knowledge graph create an entity named Redis Cluster of type service with the observation \"x y\"",
            ),
        );
        check(
            entity_of_type,
            "As a new entity of type project, put 'Solar Roof' into the knowledge graph with the observation 'a b'.",
            Some(
                "In the knowledge graph create an entity named 'Solar Roof' of type project with the observation 'a b'",
            ),
        );
        check(
            entity_of_type,
            "Add a person called Priya Raman to the knowledge graph, with the observation \"leads\".",
            Some(
                "In the knowledge graph create an entity named Priya Raman of type person with the observation \"leads\"",
            ),
        );
        check(entity_of_type, "Add it to the knowledge graph as an entity of type service", None);
        check(entity_of_type, "Don't add Redis to the knowledge graph as an entity of type service", None);
        check(
            entity_in_chinese,
            "把“短信平台”作为新实体加进知识图谱，类型“服务”",
            Some("在知识图谱里新建实体“短信平台”，类型“服务”"),
        );
        check(
            entity_fields,
            "新建实体“短信平台”，类型是“服务”，观察写“由平台组负责”",
            Some("新建实体“短信平台”，类型“服务”，观察“由平台组负责”"),
        );
    }

    #[test]
    fn rewrites_addition_and_deletion_of_observations() {
        check(
            observed,
            "知识图谱里“消息网关”这个实体再加两条观察：“甲”和“乙”",
            Some("给知识图谱里的实体“消息网关”加两条观察：“甲”和“乙”"),
        );
        check(observed, "“消息网关”这个实体有两条观察：“甲”和“乙”", None);
        check(
            observation_deletion,
            "实体“库存系统”有一条观察“使用 Oracle 11g”已经过时，请从图谱里删掉这条观察",
            Some("从知识图谱里删除实体“库存系统”的观察“使用 Oracle 11g”"),
        );
        check(observation_deletion, "实体“甲”有一条观察“乙”要保留，请删掉其他观察", None);
        check(observation_deletion, "实体“甲”有一条观察“乙”过时了，请删掉这个实体", None);
    }

    #[test]
    fn rewrites_relations_with_both_ends() {
        check(
            relation_between,
            "Remove the relation saying that Tom Becker manages Team Atlas from the graph",
            Some("Remove the relation Tom Becker manages Team Atlas from the graph"),
        );
        check(
            relation_between,
            "drop the relation 'works for' between Nina Kraus and Bluebird Ltd from the graph",
            Some("drop the relation 'works for' from Nina Kraus to Bluebird Ltd from the graph"),
        );
        check(
            relation_between,
            "Please record in the knowledge graph that Priya Nair \"maintains\" Billing Service.",
            Some(
                "In the knowledge graph create the relation \"maintains\" from Priya Nair to Billing Service",
            ),
        );
        check(relation_between, "Record in the knowledge graph that it \"maintains\" something", None);
    }
}
