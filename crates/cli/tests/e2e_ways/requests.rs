//! The requests for a real model, with the expected calls and answers.

pub(crate) struct Request {
    pub(crate) kind: &'static str,
    pub(crate) prompt: &'static str,
    /// The expected calls; empty if no tool is suitable.
    pub(crate) calls: &'static [Call],
    pub(crate) answer: Right,
}

/// An expected call.
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) shown_by: Shown,
}

/// How the arguments are checked. An expression can be written in many ways, so its result is compared.
pub(crate) enum Shown {
    /// Each of these arguments ends with this text.
    Arguments(&'static [(&'static str, &'static str)]),
    /// The result holds this text.
    Result(&'static str),
}

/// The expected answer.
pub(crate) enum Right {
    /// Contains each of these texts.
    Holds(&'static [&'static str]),
    /// Contains these texts and the time returned by `get_time`.
    Time(&'static [&'static str]),
    /// States that the request cannot be fulfilled.
    Declines,
}

const fn calculates(value: &'static str) -> Call {
    Call { tool: "calculate", shown_by: Shown::Result(value) }
}

const fn tells_time(zone: &'static str) -> Call {
    Call { tool: "get_time", shown_by: Shown::Result(zone) }
}

const fn reads(path: &'static [(&'static str, &'static str)]) -> Call {
    Call { tool: "read_file", shown_by: Shown::Arguments(path) }
}

const STOCK: Call = Call {
    tool: "read_data_from_excel",
    shown_by: Shown::Arguments(&[("filepath", "stock.xlsx"), ("sheet_name", "Sales")]),
};

/// The available tools.
pub(crate) const TOOLS: [&str; 4] = ["calculate", "get_time", "read_file", "read_data_from_excel"];
/// The files that the requests mention.
pub(crate) const FILES: [(&str, &str); 2] =
    [("notes.txt", "Buy strings for the violin.\n"), ("price.txt", "37\n")];
/// The sheet `Sales` of `stock.xlsx`.
pub(crate) const ROWS: &str = r#"[["item","count"],["violin",17],["cello",8]]"#;

/// Held-out requests: not used for tuning the prompts, only for measuring.
pub(crate) const HELD_OUT: [Request; 6] = [
    Request {
        kind: "calculate",
        prompt: "1024 除以 16 等于多少？",
        calls: &[calculates("64")],
        answer: Right::Holds(&["64"]),
    },
    Request {
        kind: "calculate",
        prompt: "How much is 7 to the power of 5?",
        calls: &[calculates("16807")],
        answer: Right::Holds(&["16807"]),
    },
    Request {
        kind: "time",
        prompt: "What's the time in Sydney right now?",
        calls: &[tells_time("Australia/Sydney")],
        answer: Right::Time(&[]),
    },
    Request {
        kind: "time",
        prompt: "纽约现在是什么时间？",
        calls: &[tells_time("America/New_York")],
        answer: Right::Time(&[]),
    },
    Request {
        kind: "file",
        prompt: "What does price.txt contain?",
        calls: &[reads(&[("path", "price.txt")])],
        answer: Right::Holds(&["37"]),
    },
    Request { kind: "no tool", prompt: "Play some jazz for me.", calls: &[], answer: Right::Declines },
];

/// Six kinds, both languages. The prompts were tuned with these requests.
pub(crate) const REQUESTS: [Request; 12] = [
    Request {
        kind: "calculate",
        prompt: "23*47 等于多少？",
        calls: &[calculates("1081")],
        answer: Right::Holds(&["1081"]),
    },
    Request {
        kind: "calculate",
        prompt: "What is 15% of 80?",
        calls: &[calculates("12")],
        answer: Right::Holds(&["12"]),
    },
    Request {
        kind: "calculate",
        prompt: "2 的 20 次方是多少？",
        calls: &[calculates("1048576")],
        answer: Right::Holds(&["1048576"]),
    },
    Request {
        kind: "time",
        prompt: "What time is it in Tokyo?",
        calls: &[tells_time("Asia/Tokyo")],
        answer: Right::Time(&[]),
    },
    Request {
        kind: "time",
        prompt: "现在柏林几点了？",
        calls: &[tells_time("Europe/Berlin")],
        answer: Right::Time(&[]),
    },
    Request {
        kind: "file",
        prompt: "Read the file notes.txt and tell me what it says.",
        calls: &[reads(&[("path", "notes.txt")])],
        answer: Right::Holds(&["violin"]),
    },
    Request {
        kind: "sheet",
        prompt: "Read the sheet Sales of stock.xlsx: how many violins are there?",
        calls: &[STOCK],
        answer: Right::Holds(&["17"]),
    },
    Request {
        kind: "sheet",
        prompt: "读取 stock.xlsx 的工作表 Sales，cello 有多少？",
        calls: &[STOCK],
        answer: Right::Holds(&["8"]),
    },
    Request {
        kind: "two steps",
        prompt: "What is 12*12, and what time is it in Paris?",
        calls: &[calculates("144"), tells_time("Europe/Paris")],
        answer: Right::Time(&["144"]),
    },
    Request {
        kind: "two steps",
        prompt: "读取 price.txt 里的单价，再算出买 12 个要多少钱。",
        calls: &[reads(&[("path", "price.txt")]), calculates("444")],
        answer: Right::Holds(&["444"]),
    },
    Request {
        kind: "no tool",
        prompt: "Send an e-mail to Anna that I am late.",
        calls: &[],
        answer: Right::Declines,
    },
    Request {
        kind: "no tool",
        prompt: "帮我订一张明天去上海的火车票。",
        calls: &[],
        answer: Right::Declines,
    },
];
