//! The language of all messages, and the help with its Chinese texts.

use std::ffi::OsString;

use clap::builder::{PossibleValuesParser, Str};
use clap::{Arg, ArgAction, Command, CommandFactory as _};
use toolhub_client_config::Client;
use toolhub_core::Lang;

use crate::app::App;
use crate::args::Cli;
use crate::exit::{Exit, UsageError};

/// The language given by `--lang`, otherwise by the locale.
pub(crate) fn language(args: &[OsString]) -> Lang {
    let words: Vec<String> = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let after = words.iter().position(|word| word == "--lang").and_then(|at| words.get(at + 1));
    let joined = words.iter().find_map(|word| word.strip_prefix("--lang="));
    if let Some(lang) = joined.or(after.map(String::as_str)).and_then(|word| word.parse().ok()) {
        return lang;
    }
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.map_or(Lang::En, |locale| Lang::from_locale(&locale))
}

/// The heading of the options that every command takes.
const GLOBAL_OPTIONS: &str = "Global options";

/// The clap command with its help in `lang`.
pub(crate) fn command(lang: Lang) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).global(true);
    let help = help.help_heading(GLOBAL_OPTIONS);
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    let version = version.help_heading(GLOBAL_OPTIONS);
    let command = Cli::command()
        .arg(help.help("Show this help"))
        .arg(version.help("Show the version"))
        .after_help("Exit codes: 0 done · 1 failed · 2 wrong usage or config · 3 server not reached · 124 timed out · 130 interrupted");
    let command = match lang {
        Lang::En => command,
        Lang::Zh => localized(command, "").after_help(
            "退出码：0 完成 · 1 失败 · 2 用法或配置错误 · 3 无法连接服务器 · 124 超时 · 130 中断",
        ),
    };
    with_client_names(command, &client_list(lang))
}

/// The clients that can be set up, imported from and exported to.
pub(crate) fn client_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Client::all().map(Client::name))
}

/// The names of the clients as a sentence part: `a, b or c`.
fn client_list(lang: Lang) -> String {
    let names: Vec<&str> = Client::all().map(Client::name).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, names)) => {
            let (comma, or) = lang.choose((", ", " or "), ("、", " 或 "));
            format!("{}{or}{last}", names.join(comma))
        }
        None => String::new(),
    }
}

/// Replaces `{clients}` in the help of arguments.
fn with_client_names(command: Command, names: &str) -> Command {
    let command = command.mut_args(|arg| {
        let text = arg.get_help().map(ToString::to_string).filter(|text| text.contains("{clients}"));
        match text {
            Some(text) => arg.help(text.replace("{clients}", names)),
            None => arg,
        }
    });
    command.mut_subcommands(|sub| with_client_names(sub, names))
}

fn localized(command: Command, path: &str) -> Command {
    let mut command = command
        .help_template("{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}")
        .subcommand_help_heading("命令")
        .subcommand_value_name("命令");
    if let Some(about) = chinese(path) {
        command = command.about(about);
    }
    let mut order = 0;
    command = command.mut_args(|arg| {
        // clap orders arguments with a heading differently, so the position is set explicitly.
        order += 1;
        let id = arg.get_id().to_string();
        let is_global = arg.get_help_heading() == Some(GLOBAL_OPTIONS);
        let heading = match (arg.is_positional(), is_global) {
            (true, _) => "参数",
            (_, true) => "全局选项",
            _ => "选项",
        };
        let names = arg.get_value_names().unwrap_or_default().iter();
        let names: Vec<Str> =
            names.map(|name| chinese_value(name.as_str()).map_or_else(|| name.clone(), Str::from)).collect();
        // clap aligns columns by the number of characters, not by their width, so options keep their placeholders.
        let arg = if arg.is_positional() && !names.is_empty() { arg.value_names(names) } else { arg };
        let arg = arg.help_heading(heading).display_order(order);
        match chinese(&format!("{path} {id}")).or_else(|| chinese(&format!(" {id}"))) {
            Some(text) => arg.help(text),
            None => arg,
        }
    });
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        let path = format!("{path}/{name}");
        command = command.mut_subcommand(&name, |sub| localized(sub, &path));
    }
    command
}

/// Texts that clap cannot be configured to translate.
const PLACEHOLDERS: [(&str, &str); 6] = [
    ("[OPTIONS]", "[选项]"),
    ("[alias: ", "[别名："),
    ("全局选项:", "全局选项："),
    ("选项:", "选项："),
    ("参数:", "参数："),
    ("命令:", "命令："),
];

/// Translates clap's own texts in a help or error message.
pub(crate) fn translate_clap_text(text: String, lang: Lang) -> String {
    match lang {
        Lang::En => text,
        Lang::Zh => PLACEHOLDERS.iter().fold(text, |text, (en, zh)| text.replace(en, zh)),
    }
}

/// The Chinese placeholder of a positional argument; `None` if it is the same as the English one.
fn chinese_value(name: &str) -> Option<&'static str> {
    Some(match name {
        "CLIENT" => "客户端",
        "CLIENT|FILE" => "客户端|文件",
        "COMMAND" => "命令",
        "FILE" => "文件",
        "HANDLE" => "句柄",
        "IDS" => "ID",
        "KEY=VALUE" => "键=值",
        "NAME" | "NAMES" => "名称",
        "PATH" => "路径",
        "QUERY" => "查询",
        "REQUEST" => "请求",
        "SERVER" => "服务器",
        "TOOL" => "工具",
        _ => return None,
    })
}

/// The Chinese text of a command (`/call`) or of an argument (`/call tool`; ` json` for all commands).
fn chinese(key: &str) -> Option<&'static str> {
    Some(match key {
        "" => "AI 智能体所有工具的统一入口",
        " config" => "配置文件 [默认：此目录受信任时为 ./toolhub.toml，否则为用户的配置]",
        " home" => "数据目录 [默认：用户数据目录]",
        " trust" => {
            "本次运行使用此目录带有的内容；也可设 TOOLHUB_TRUST=1，或用 TOOLHUB_TRUST=目录:目录 只信任这些目录"
        }
        " hub" => "使用该地址上正在运行的 hub，密钥取自 TOOLHUB_HUB_KEY；也可设 TOOLHUB_HUB=URL",
        " hub_key_file" => "与 `--hub` 合用：从此文件读取密钥",
        " hub_plain_http" => "与 `--hub` 合用：允许以 http:// 连接其他机器，途中他人可能读到密钥",
        " no_hub" => {
            "不使用正在运行的 hub：即使 `toolhub serve` 正以相同配置运行，也自行启动服务器；也可设 TOOLHUB_NO_HUB=1"
        }
        " json" => "在标准输出给出机器可读的结果",
        " trace" => "在标准错误显示路由和每个事件",
        " quiet" => "只输出结果和错误",
        " verbose" => "在标准错误显示更多信息",
        " lang" => "消息语言：en 或 zh [默认：按系统区域]",
        " color" => "颜色：auto、always 或 never",
        " help" => "显示帮助",
        " version" => "显示版本",
        "/ask" => "用自己的话提出请求：规划、运行工具、作答",
        "/ask request" => "用自己的话说明想做什么；`-` 表示从标准输入读取",
        "/ask conversation" => "所属的对话；没有用过的 id 会开始新对话 [默认：新对话]",
        "/chat" => "连续对话，并保留记录",
        "/chat resume" => "继续之前的对话；`last` 为最近的一个",
        "/chat list" => "列出之前的对话",
        "/prompt" => "输出模型会收到的提示，包括工具",
        "/prompt query" => "针对的请求：决定显示哪些工具",
        "/prompt budget" => "用于说明工具的 token 数",
        "/prompt plan" => "输出制定计划用的提示，而不是对话用的",
        "/prompt format" => "如何告诉模型有哪些工具：text 或 native [默认：按配置的模型]",
        "/ask agent" | "/chat agent" | "/prompt agent" => "使用配置中的哪个智能体 [默认：`default`，若有]",
        "/ask model" | "/chat model" => "模型，按其在已配置端点上的名称",
        "/ask no_llm" | "/chat no_llm" => "不用模型：按规则规划",
        "/ask mode" | "/chat mode" => {
            "模型如何工作：talk（边说边调用工具）、plan（先制定计划）或 code（编写脚本）"
        }
        "/ask yes" | "/chat yes" => "事先同意运行会更改或删除数据的工具",
        "/ask stream" | "/chat stream" => "模型边说边输出，写入管道时也是",
        "/call" => "调用工具",
        "/script" => "运行调用工具的 JavaScript 程序",
        "/script file" => "程序文件；`-` 表示标准输入",
        "/script input" => "程序中的 `input`：JSON 值、`@文件`，或 `-` 表示标准输入",
        "/script dry_run" => "不做任何更改：只调用声明为只读的工具，列出其余调用及其参数",
        "/script timeout" => "最长运行时间，例如 30s 或 2m",
        "/script/types" => "输出脚本可调用的工具的 TypeScript 声明（.d.ts）",
        "/script/types servers" => "只看这些服务器的工具",
        "/script/resume" => "继续因 hub 被终止而中断的脚本；已有结果的改动不会重复",
        "/script/resume id" => "`toolhub history` 中该脚本的编号",
        "/call tool" => "工具名；使用 `--capability` 时为第一个参数",
        "/explain tool" | "/tools/show tool" => "工具名",
        "/call capability" => "不指定工具，由适用于该类别（如 search、calculate、time）的工具处理",
        "/run" => "从标准输入读取模型的文本，运行其中的每个工具调用",
        "/run brief" => "只给出模型会看到的部分；其余保留，见 `toolhub result`",
        "/run timeout" => "每个调用的最长等待时间（含连接），例如 30s、500ms 或 2m",
        "/parse" => "从标准输入读取模型的文本，显示其中的工具调用；不运行任何工具",
        "/parse jsonl" => {
            "每行一个文本：输入 `{\"id\",\"text\",\"tools\"?}`，输出 `{\"id\",\"calls\",\"repaired\",\"error\"}`"
        }
        "/call brief" => "只显示模型会看到的部分；其余保留，见 `toolhub result`",
        "/call verify" => "检查结果：与之前的结果比较，并检查数值、日期和时间",
        "/call idempotency_key" => "与 `--hub` 合用：以相同的键重复调用时，返回首次的结果而不再执行",
        "/call request" => "用自己的话说明想做什么：供 `toolhub recommend` 参考",
        "/explain capability" => "不指定工具，由适用于该类别的工具处理",
        "/explain principal" => "显示该主体能否通过网关看到和调用此工具：密钥名称，或 local",
        "/explain profile" => "该主体使用的配置方案 [默认：default]",
        "/tools tag" => "只列出适用于该类别的工具，例如 search 或 table",
        "/call pairs" => "参数，按工具的 schema 确定类型；`key:=JSON` 直接给出 JSON 值",
        "/call args" => "JSON 对象形式的参数，`@文件`，或 `-` 表示标准输入",
        "/call source" => "工具所在；给出服务器名则只用该服务器",
        "/call timeout" => "最长等待时间（含连接），例如 30s、500ms 或 2m",
        "/explain" => "显示调用会由谁处理及原因，不执行",
        "/explain source" => "调用方认为工具所在之处",
        "/explain args" => "JSON 对象形式的参数，`@文件` 或 `-`：不接受这些参数的候选会被排除",
        "/tools" => "列出工具，或查看一个工具",
        "/tools source" => "只列出该来源的工具",
        "/tools refresh" => "重新询问每个服务器",
        "/tools cached" => "只用已知信息，不连接服务器",
        "/tools/show" => "查看一个工具及其参数",
        "/tools/show source" => "查看哪个来源的 [默认：会被调用的那个]",
        "/console" => "打开运行中 hub 的网页控制台；没有则启动一个",
        "/console bind" => "没有运行中的 hub 时监听的地址 [默认：127.0.0.1:7460]",
        "/console no_browser" => "只显示链接，不打开浏览器",
        "/servers" => "列出、添加、删除、测试 MCP 服务器",
        "/servers/list" => "列出已配置的服务器，不连接",
        "/servers/add" => "将服务器写入 mcp.json",
        "/servers/add id" => "服务器名；`-` 表示从标准输入读取 `{\"mcpServers\": …}`",
        "/servers/add url" => "HTTP 服务器的地址",
        "/servers/add kind" => "HTTP 服务器的类型：http 或 sse",
        "/servers/add header" => "每个请求都带的请求头",
        "/servers/add env" => "给程序设置的环境变量",
        "/servers/add cwd" => "程序的工作目录",
        "/servers/add replace" => "替换同名服务器",
        "/servers/add no_test" => "不尝试连接",
        "/servers/add command" => "程序及其参数；`-` 表示从标准输入读取该服务器的 JSON",
        "/servers/remove" => "删除服务器",
        "/servers/remove id" => "哪个服务器",
        "/servers/test" => "连接服务器并列出其工具",
        "/servers/login" => "登录需要身份验证的服务器",
        "/servers/login no_browser" => "只显示地址，不打开浏览器",
        "/servers/login issuer" => "在此授权服务器登录，并将凭据绑定于它",
        "/servers/login principal" => {
            "为网关的该调用方登录（需 `credentials = \"caller\"`）：密钥名称，或 oidc:ISSUER#SUBJECT"
        }
        "/servers/logout principal" => "网关的该调用方的令牌：密钥名称，或 oidc:ISSUER#SUBJECT",
        "/servers/logout" => "交还并删除服务器的令牌",
        "/servers/login id" | "/servers/logout id" => "哪个服务器",
        "/servers/refresh" => "重新询问服务器的工具，并说明变化",
        "/servers/show" => "显示服务器的已知信息，不连接",
        "/servers/show id" | "/servers/read id" | "/servers/prompt id" => "哪个服务器",
        "/servers/read" => "读取服务器的一个资源",
        "/servers/read uri" => "资源的 URI",
        "/servers/read output" => "保存到此文件，而不是显示",
        "/servers/prompt" => "获取服务器的一个提示词",
        "/servers/prompt name" => "提示词的名称",
        "/servers/prompt pairs" => "提示词的参数",
        "/servers/prompt output" => "将内容保存到此文件，而不是显示",
        "/servers/offers" => "列出服务器的资源、资源模板和提示词",
        "/servers/offers id" => "哪个服务器",
        "/servers/restart" => "重启正在运行的 hub 中的服务器",
        "/servers/logs" => "显示服务器最后写到标准错误的内容",
        "/servers/enable" => "重新使用服务器",
        "/servers/disable" => "保留服务器配置，但不使用",
        "/servers/logs id" | "/servers/restart id" | "/servers/enable id" | "/servers/disable id" => {
            "哪个服务器"
        }
        "/servers/refresh ids" => "哪些服务器 [默认：全部]",
        "/tools/diff" => "显示工具定义的变化",
        "/tools/diff tool" => "工具名",
        "/tools/diff source" => "哪个来源的 [默认：会被调用的那个]",
        "/tools/approve" => "认可工具当前的定义，以便发现之后的改动",
        "/tools/approve tool" => "工具名",
        "/tools/approve source" => "哪个来源的（多个来源都有该工具时）",
        "/tools/approve server" => "该服务器的所有工具",
        "/tools/approve all" => "所有服务器的所有工具",
        "/tools/approve revoke" => "撤销批准",
        "/tools/approve list" => "只显示已批准的工具",
        "/tools/approve yes" => "可疑的也批准",
        "/servers/import" => "导入其他客户端（如 Claude Code、Cursor、VS Code）的服务器",
        "/servers/import what" => "{clients}；或一个文件 [默认：列出找到的]",
        "/servers/import all" => "导入找到的所有客户端的服务器",
        "/servers/export" => "将服务器写入其他客户端的文件",
        "/servers/export client" => "{clients}",
        "/servers/export servers" => "哪些服务器 [默认：全部]",
        "/servers/export gateway" => {
            "写入 toolhub 自身而不是各服务器：客户端通过 `toolhub serve --stdio` 使用所有工具"
        }
        "/servers/export profile" => "与 `--gateway` 同用：客户端看到的配置方案",
        "/servers/export file" => "写入的文件 [默认：该客户端自己的文件]",
        "/servers/import dry_run" | "/servers/export dry_run" => "只显示会做什么",
        "/servers/import replace" | "/servers/export replace" => "替换同名服务器",
        "/servers/test ids" => "哪些服务器 [默认：全部]",
        "/tools/search" => "按用途查找工具",
        "/tools/search query" => "想做什么，用自己的话说；或工具名",
        "/tools/search limit" => "最多显示多少个",
        "/tools/search explain" => "显示每个分数的组成",
        "/tools/search all" => "即使没有合适的，也显示最接近的",
        "/tools/search cached" => "只用已知信息，不连接服务器",
        "/eval" => "用自己的数据衡量 toolhub 的效果",
        "/eval/search" => "衡量查找工具的效果",
        "/eval/search tools" => "工具，每行一个 JSON 定义",
        "/eval/search queries" => "请求，每行一个：{\"query\", \"relevant\": [id 或名称]}",
        "/eval/search compare" => "另一组设置（JSON），与当前设置并排衡量",
        "/eval/plan all" => "显示每个计划，包括正确的",
        "/eval/plan" => "衡量规划请求的效果，不调用任何工具",
        "/eval/plan model" => "由该模型（按其在已配置端点上的名称）制定计划，而不用规则",
        "/eval/plan tools" => "工具，每行一个 JSON 定义",
        "/eval/plan requests" => {
            "请求，每行一个：{\"id\", \"request\", \"expected\": [{\"tool\": [名称], \"arguments\": {参数: [可接受的值]}}]}"
        }
        "/skills" => "列出、检查、批准和运行技能",
        "/skills/list" => "列出找到的技能及其问题",
        "/skills/list servers" => "也列出 MCP 服务器的技能；会连接它们",
        "/skills/show" => "显示一个技能：说明、文件、工具和权限",
        "/skills/show name" => "技能名，或其工具名",
        "/skills/show file" => "改为显示技能的这个文件，例如 references/guide.md",
        "/skills/validate" => "按规则检查技能，并说明应怎样写",
        "/skills/validate paths" => "技能目录、其 SKILL.md，或单个 Python 文件",
        "/skills/run" => "运行技能的工具",
        "/skills/run name" => "技能名",
        "/skills/run tool" => "工具名 [默认：技能唯一的工具]",
        "/skills/run pairs" => "参数，按工具的 schema 确定类型；`key:=JSON` 直接给出 JSON 值",
        "/skills/run args" => "参数：JSON 对象、`@文件`，或 `-`（标准输入）",
        "/skills/run timeout" => "最长等待时间，例如 30s、500ms 或 2m",
        "/skills/approve" => "按现状同意技能及其请求的权限",
        "/skills/approve names" => "技能名、路径，或其工具名",
        "/skills/approve all" => "所有等待审批的技能",
        "/skills/approve revoke" => "撤销批准",
        "/skills/approve yes" => "不再询问，可疑的和请求更多权限的也批准",
        "/skills/new" => "新建一个技能的雏形",
        "/skills/new name" => "名称：小写字母、数字和连字符",
        "/skills/new place" => "建在哪个目录 [默认：配置文件旁的 `skills`]",
        "/skills/new tool" => "附带一个作为工具的脚本",
        "/history" => "显示调用过什么以及结果",
        "/history id" => "显示该调用及它发起的调用：列表中的编号，或 `last`",
        "/history tool" => "只显示该工具的调用",
        "/history source" => "只显示由此处回答（或尝试过）的调用",
        "/history status" => "只显示状态为 succeeded、failed、unknown 或 running 的调用",
        "/history conversation" => "只显示该对话的调用",
        "/history text" => "只显示工具名、参数或请求中含有该文字的调用",
        "/history since" => "只显示最近一段时间的调用，例如 30m、2h 或 7d",
        "/history limit" => "最多多少条 [默认：20；使用 `--export` 时为全部]",
        "/recommend limit" => "最多显示多少条",
        "/history follow" => "持续显示新结束的调用",
        "/history export" => "将所有符合条件的调用写入文件，每行一个 JSON 对象；`-` 表示标准输出",
        "/stats" => "显示各工具的表现",
        "/stats tool" => "只显示该工具",
        "/stats source" => "只显示该来源的工具",
        "/recommend" => "显示通常有效的工具：接下来用的、适合某个请求的，或总体上的",
        "/recommend request" => "用自己的话说明想做什么",
        "/recommend after" => "在该工具之后通常用什么",
        "/result" => "显示之前某次调用的完整结果",
        "/result handle" => "句柄，见 `call --json` 和 `history`；或 `last`",
        "/result page" => "只显示这一页，每页 4,000 个字符",
        "/init" => "为此计算机上的 MCP 客户端设置 toolhub：导入它们的服务器，并让它们使用 hub",
        "/init client" => "设置该客户端：{clients}；可重复",
        "/init all" => "设置找到的所有客户端",
        "/init yes" => "不再询问，直接改动文件，用于脚本",
        "/init dry_run" => "只显示会改动什么",
        "/init no_import" => "不导入服务器，让它们留在客户端中",
        "/init no_connect" => "只导入服务器，不改动客户端的文件",
        "/init undo" => "撤销 `toolhub init` 的改动",
        "/trust" => "显示此目录的配置、服务器和技能会做什么，并信任它们",
        "/trust list" => "列出受信任的目录",
        "/trust revoke" => "不再信任某个目录 [默认：当前目录]",
        "/trust yes" => "不再询问，用于脚本",
        "/doctor" => "检查配置、服务器、数据和模型，并说明如何解决",
        "/doctor ask_model" => "向语言模型说一句话，看它是否回答；可能产生少量费用",
        "/serve" => "通过 HTTP 或标准输入输出向 MCP 客户端提供所有工具",
        "/serve bind" => "监听地址 [默认：127.0.0.1:7460]",
        "/serve stdio" => "通过标准输入输出与一个客户端通信",
        "/serve profile" => "客户端未指定时使用的配置方案",
        "/serve no_servers" => "只提供内置工具和技能：不启动也不连接任何 MCP 服务器",
        "/keys" => "为使用网关的人和程序生成、列出、吊销和更换密钥",
        "/keys/new" => "为人或程序生成密钥；只显示一次",
        "/keys/new name" => "人或程序的名称",
        "/keys/new roles" => {
            "角色：viewer、caller、approver、operator、auditor 或 owner；可重复 [默认：caller]"
        }
        "/keys/new profiles" => "密钥可用的配置方案；可重复 [默认：全部]",
        "/keys/new expires" => "从何时起失效，如 2027-01-31",
        "/keys/new per_day" => "每日（UTC）最多调用次数",
        "/keys/new same_person" => "供已吊销的同名密钥的同一人使用：可访问该名称下的调用、响应和批准",
        "/keys/list" => "列出密钥",
        "/keys/list all" => "也显示已吊销密钥的名称",
        "/keys/show" => "显示一个密钥的角色、配置方案、有效期和额度",
        "/keys/show name" => "密钥的名称",
        "/keys/revoke" => "吊销密钥；使用它的连接在一秒内断开",
        "/keys/revoke name" => "密钥的名称",
        "/keys/rotate" => "更换密钥，保留其设置",
        "/keys/rotate name" => "密钥的名称",
        "/work" => "在本机为集群的 hub 运行服务器",
        "/work labels" => "本机向有要求的服务器提供的标签，用逗号分隔 [默认：`[worker]` 中的值]",
        "/work capacity" => "同时运行的程序数 [默认：`[worker]` 中的值]",
        "/work scripts" => "同时运行的脚本数；0 表示不运行脚本 [默认：`[worker]` 中的值]",
        "/work skills" => "同时运行的技能脚本数；0 表示不运行 [默认：`[worker]` 中的值]",
        "/cluster" => "显示集群状态",
        "/cluster/status" => "显示副本、工作进程、服务器所在位置，以及哪些功能降级",
        "/waiting" => "列出、批准和拒绝待审批的调用",
        "/waiting all" => "也显示已决定或已过期的调用",
        "/waiting/approve" => "批准一个调用，可执行一次",
        "/waiting/approve id" => "调用的编号",
        "/waiting/deny" => "拒绝一个调用",
        "/waiting/deny id" => "调用的编号",
        "/audit" => "查看、校验和导出审计日志",
        "/audit/show" => "显示最近的记录",
        "/audit by" | "/audit/show by" => "只看该主体的记录，如 key:ci、local",
        "/audit kind" | "/audit/show kind" => {
            "只看该类记录：login、refusal、call、held_call、key_change、rule_change、config_change、server_change 或 use"
        }
        "/audit since" | "/audit/show since" => "只看此时间段内的记录，如 30m、2h、7d",
        "/audit reference" | "/audit/show reference" => "只看该编号的记录：拒绝、待审批的调用或调用的编号",
        "/audit limit" | "/audit/show limit" => "最多显示多少条 [默认：20]",
        "/audit/verify" => "检查是否有记录被改动、删除或调换顺序",
        "/audit/verify file" => "校验该导出文件，而不是已存储的日志",
        "/audit/export" => "把整个日志写入文件；`-` 表示标准输出",
        "/audit/export file" => "文件；`-` 表示标准输出",
        "/audit/export format" => "jsonl（可用 `audit verify 文件` 校验）或 ocsf",
        "/history by" => "只看该主体的调用，如 key:ci、local",
        "/serve new_token" => "为调用方生成一个令牌，然后退出",
        "/serve check" => "检查正在运行的 hub 是否就绪，然后退出；用于健康检查",
        "/man-pages" => "生成手册页",
        "/man-pages folder" => "写入的目录",
        "/help" => "显示命令的帮助",
        "/help command" => "哪个命令",
        "/tools/list" => "列出所有工具",
        "/completions" => "输出 shell 补全脚本",
        "/completions shell" => "bash、zsh、fish、elvish 或 powershell",
        _ => return None,
    })
}

/// `toolhub help COMMAND`.
pub(crate) fn show(app: &App, path: &[String]) -> anyhow::Result<Exit> {
    let mut command = command(app.lang());
    command.build();
    let mut found = &mut command;
    for name in path {
        found = found.find_subcommand_mut(name).ok_or_else(|| {
            UsageError(
                app.lang().choose(format!("there is no command `{name}`"), format!("没有命令 `{name}`")),
            )
        })?;
    }
    app.screen.own_text(translate_clap_text(found.render_help().ansi().to_string(), app.lang()).trim_end());
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn untranslated(command: &Command, path: &str, missing: &mut Vec<String>) {
        if chinese(path).is_none() {
            missing.push(path.to_owned());
        }
        for arg in command.get_arguments() {
            let id = arg.get_id();
            if chinese(&format!("{path} {id}")).or_else(|| chinese(&format!(" {id}"))).is_none() {
                missing.push(format!("{path} {id}"));
            }
        }
        for sub in command.get_subcommands() {
            untranslated(sub, &format!("{path}/{}", sub.get_name()), missing);
        }
    }

    #[test]
    fn every_help_text_has_a_translation() {
        let mut missing = Vec::new();
        untranslated(&command(Lang::En), "", &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }

    /// Placeholders that are equal in both languages.
    const SAME: [&str; 3] = ["ID", "SHELL", "URI"];

    fn english_values(command: &Command, found: &mut Vec<String>) {
        for arg in command.get_positionals() {
            let names = arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str());
            found.extend(names.filter(|name| name.is_ascii() && !SAME.contains(name)).map(str::to_owned));
        }
        for sub in command.get_subcommands() {
            english_values(sub, found);
        }
    }

    #[test]
    fn chinese_help_translates_every_positional() {
        let mut found = Vec::new();
        english_values(&command(Lang::Zh), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn command_definition_passes_debug_assert() {
        command(Lang::En).debug_assert();
        command(Lang::Zh).debug_assert();
    }
}
