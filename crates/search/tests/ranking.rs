//! Ranking over small catalogs: names, words, both languages, history, meaning, and requests without a relevant tool.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolhub_core::{RawJson, ServerId, Source, Tool, ToolDefinition, ToolName};
use toolhub_search::{
    Embedder, EmbeddingError, Fingerprint, RankingSettings, SearchRequest, ToolHistory, ToolIndex,
    VectorCache,
};

fn tool(source: &str, name: &str, description: &str) -> Tool {
    let definition = serde_json::json!({"name": name, "description": description});
    with_definition(source, &definition)
}

fn with_definition(source: &str, definition: &serde_json::Value) -> Tool {
    let definition = ToolDefinition::parse(RawJson::of(definition)).unwrap();
    Tool::new(Source::Server(ServerId::new(source)), definition)
}

fn office() -> Vec<Tool> {
    vec![
        tool("excel", "read_data_from_excel", "Read the cells of a worksheet"),
        tool("excel", "write_data_to_excel", "Write values into the cells of a worksheet"),
        tool("excel", "createChart", "Create a chart in a worksheet"),
        tool("mail", "send_email", "Send a message to one or more recipients"),
        tool("mail", "list_mailboxes", "List the folders of the mail account"),
        tool("weather", "get_forecast", "Weather forecast for a city over the next days"),
        tool("travel", "train_ticket_booking", "Book train tickets between two cities"),
        tool("travel", "hotel_search", "Find hotels with free rooms"),
        tool("homes", "house_renting", "Find houses to rent by place and price"),
        tool("files", "rename_file", "Give a file another name"),
        tool("files", "delete_file", "Delete a file"),
        tool("文档", "summarize_doc", "总结一篇文档的主要内容"),
    ]
}

fn index() -> ToolIndex {
    ToolIndex::new(office(), RankingSettings::default())
}

fn first(index: &ToolIndex, request: &str) -> String {
    let ranking = index.rank(&SearchRequest::new(request));
    ranking.hits.first().map(|hit| hit.tool.name().to_string()).unwrap_or_default()
}

#[track_caller]
fn check(request: &str, expect: &str) {
    assert_eq!(first(&index(), request), expect, "{request}");
}

#[test]
fn ranks_named_tool_first() {
    check("read_data_from_excel", "read_data_from_excel");
    check("readDataFromExcel", "read_data_from_excel");
    check("read data from excel", "read_data_from_excel");
    check("excel__createChart", "createChart");
    check("please call create_chart for the hotel weather email", "createChart");
    check("用 rename_file 处理一下天气预报", "rename_file");
}

#[test]
fn tolerates_typo_in_tool_name() {
    check("raed_data_from_excel", "read_data_from_excel");
    check("send_emial", "send_email");
    check("hotelsearch", "hotel_search");
    check("get_forcast", "get_forecast");
}

#[test]
fn tolerates_typo_in_word() {
    check("show me the forecaat for tomorrow", "get_forecast");
}

#[test]
fn finds_tools_by_words() {
    check("what will the weather be like in Kyoto", "get_forecast");
    check("remove this file from the disk", "delete_file");
    check("I need an apartment", "house_renting");
}

#[test]
fn finds_english_tools_for_chinese_requests() {
    check("明天北京的天气怎么样", "get_forecast");
    check("帮我订一张去上海的火车票", "train_ticket_booking");
    check("把这个文件重命名", "rename_file");
    check("给张三发送一封邮件", "send_email");
}

#[test]
fn finds_chinese_tools_for_english_requests() {
    check("summary of a document", "summarize_doc");
    let only_chinese = ToolIndex::new(
        [tool("a", "t1", "查询天气预报"), tool("a", "t2", "预订酒店房间")],
        RankingSettings::default(),
    );
    assert_eq!(first(&only_chinese, "weather forecast for Paris"), "t1");
    assert_eq!(first(&only_chinese, "reserve a hotel room"), "t2");
}

#[test]
fn searches_parameters_tags_and_examples() {
    let mut tagged = tool("a", "one", "Does a thing");
    tagged.tags = vec!["astronomy".to_owned()];
    let schema = serde_json::json!({"type": "object", "properties": {
        "iban": {"type": "string", "description": "Account to debit"},
        "mode": {"enum": ["urgent", "batch"]},
    }});
    let paying = with_definition(
        "a",
        &serde_json::json!({"name": "two", "description": "Does a thing", "inputSchema": schema}),
    );
    let shown = with_definition(
        "a",
        &serde_json::json!({"name": "three", "description": "Does a thing", "examples": ["chess opening"]}),
    );
    let index = ToolIndex::new([tagged, paying, shown], RankingSettings::default());
    assert_eq!(first(&index, "astronomy"), "one");
    assert_eq!(first(&index, "which IBAN to debit"), "two");
    assert_eq!(first(&index, "urgent"), "two");
    assert_eq!(first(&index, "a chess opening"), "three");
}

/// The tools of a spreadsheet server and of the hub: short requests in both languages, and requests without a
/// relevant tool.
#[test]
fn finds_spreadsheet_tool_by_few_words() {
    let sheet = [
        ("delete_worksheet", "Remove a worksheet from a workbook"),
        ("delete_range", "Remove a range of cells and move the others up"),
        ("delete_sheet_rows", "Remove one or several rows from a given row on"),
        ("delete_sheet_columns", "Remove one or several columns from a given column on"),
        ("insert_rows", "Put in rows from a given row on"),
        ("create_chart", "Make a chart in a worksheet"),
        ("create_table", "Make a table of a range"),
        ("merge_cells", "Join a range of cells"),
        ("apply_formula", "Put a formula into a cell"),
        ("format_range", "Set fonts, colours and borders of cells"),
    ];
    let own = [
        ("search_web", "Searches the web: titles, addresses, excerpts of pages"),
        ("get_time", "Tells the time now for a city or zone"),
        ("describe_tool", "Tells everything about one tool"),
    ];
    let tools = sheet.map(|(name, text)| tool("excel", name, text));
    let tools = tools.into_iter().chain(own.map(|(name, text)| tool("native", name, text)));
    let index = ToolIndex::new(tools, RankingSettings::default());
    let check = |request: &str, expect: Option<&str>| {
        let ranking = index.rank(&SearchRequest::new(request));
        let first = ranking.fitting().first().map(|hit| hit.tool.name().as_str());
        assert_eq!(first, expect, "{request}: {} {:?}", ranking.confidence, ranking.evidence);
    };
    check("删除一行", Some("delete_sheet_rows"));
    check("删除第三列", Some("delete_sheet_columns"));
    check("画图", Some("create_chart"));
    check("合并单元格", Some("merge_cells"));
    check("delete a row", Some("delete_sheet_rows"));
    check("draw a chart", Some("create_chart"));
    check("send an email", None);
    check("发邮件", None);
    check("tell me a joke", None);
    check("订一张机票", None);
}

/// The tools of a presentation server: nearly all of them contain "slide" and "presentation", few contain the product
/// name.
fn presentations() -> Vec<Tool> {
    let tools = [
        ("create_presentation", "Create a new PowerPoint presentation"),
        ("create_presentation_from_template", "Create a new PowerPoint presentation from a template file"),
        ("open_presentation", "Open an existing PowerPoint presentation"),
        ("save_presentation", "Save a presentation to a file"),
        ("get_presentation_info", "Tell what is in a presentation"),
        ("add_slide", "Add a slide to the presentation, with a background if wanted"),
        ("get_slide_info", "Tell what is on a slide"),
        ("extract_slide_text", "Give all text of one slide"),
        ("add_bullet_points", "Add bullet points to a placeholder of a slide in the presentation"),
        ("add_connector", "Add a line or an arrow between two points on a slide"),
        ("add_table", "Add a table to a slide"),
        ("add_chart", "Add a chart to a slide"),
        ("add_shape", "Add a shape to a slide"),
        ("apply_slide_template", "Lay out a slide by a template"),
        ("manage_slide_transitions", "Set the transitions between slides"),
    ];
    tools.map(|(name, text)| tool("office", name, text)).into()
}

/// The tools of a server for scientific papers: all of them contain "paper".
fn papers() -> Vec<Tool> {
    let tools = [
        ("search_papers", "Search arXiv by query, category and date"),
        ("download_paper", "Download a paper and give its text"),
        ("list_papers", "List the papers that were downloaded"),
        ("read_paper", "Read a paper that was downloaded"),
        ("get_abstract", "Fetch the abstract of a paper by its arXiv id"),
        ("citation_graph", "Papers that cite a paper, and those it cites"),
        ("export_citations", "BibTeX entries of papers"),
        ("watch_topic", "Keep a topic, to be told of papers that are published on it later"),
        ("get_paper_outline", "The headings of a paper"),
        ("read_paper_section", "One section of a paper"),
    ];
    tools.map(|(name, text)| tool("arxiv", name, text)).into()
}

fn hub_tools() -> Vec<Tool> {
    let tools = [
        ("search_web", "Searches the web: titles, addresses, excerpts of pages"),
        ("search_tools", "Finds tools for what you want to do; says so when none fits"),
        ("get_time", "Tells the time now for a city or zone"),
        ("calculate", "Calculates an arithmetic expression"),
        ("read_file", "Reads a text file"),
        ("list_files", "Lists the files of a folder"),
    ];
    tools.map(|(name, text)| tool("native", name, text)).into()
}

/// `PowerPoint` does not match "point", and 里加 after 在 PPT is not translated as the city of Riga.
#[test]
fn treats_product_name_as_one_word() {
    let index = ToolIndex::new([presentations(), papers(), hub_tools()].concat(), RankingSettings::default());
    let check = |request: &str, expect: &str| {
        let ranking = index.rank(&SearchRequest::new(request));
        let first = ranking.fitting().first().map(|hit| hit.tool.name().as_str());
        assert_eq!(first, Some(expect), "{request}: {} {:?}", ranking.confidence, ranking.evidence);
    };
    check("add a slide to a PowerPoint presentation", "add_slide");
    check("在 PPT 里加一张幻灯片", "add_slide");
    check("在 PPT 里面加一张幻灯片", "add_slide");
    check("make a new PowerPoint", "create_presentation");
    check("add bullet points to the PowerPoint slide", "add_bullet_points");
    check("get the BibTeX of this paper", "export_citations");
}

/// An identifier that no tool contains is matched by its parts.
#[test]
fn matches_unknown_identifier_by_its_parts() {
    check("what does WeatherForecast say", "get_forecast");
}

/// Words that occur in every tool of a server are still evidence that the server is relevant.
#[test]
fn request_fits_server_of_its_domain() {
    let beside_hub = ToolIndex::new([papers(), hub_tools()].concat(), RankingSettings::default());
    let beside_more =
        ToolIndex::new([papers(), presentations(), hub_tools()].concat(), RankingSettings::default());
    for index in [beside_hub, beside_more] {
        let shown = |request: &str| -> Vec<String> {
            let ranking = index.rank(&SearchRequest::new(request));
            ranking.fitting().iter().take(3).map(|hit| hit.tool.name().to_string()).collect()
        };
        for request in [
            "find academic papers about transformers",
            "look up papers on protein folding",
            "查找关于 transformer 的论文",
            "搜索最近的大模型论文",
        ] {
            assert!(shown(request).contains(&"search_papers".to_owned()), "{request}: {:?}", shown(request));
        }
        for request in ["send an email to my boss", "订一张机票", "play some jazz", "what is the weather"]
        {
            assert!(shown(request).is_empty(), "{request}: {:?}", shown(request));
        }
    }
}

/// A word that occurs in all tools of one server is not a common word.
#[test]
fn counts_words_of_a_server_once() {
    let request = SearchRequest::new("find academic papers about transformers");
    let surprise =
        |tools: Vec<Tool>| ToolIndex::new(tools, RankingSettings::default()).rank(&request).evidence.surprise;
    let as_of_one = |tool: &Tool| Tool { source: Source::Native, ..tool.clone() };
    let apart = [papers(), hub_tools()].concat();
    let together: Vec<Tool> = apart.iter().map(as_of_one).collect();
    let (apart, together) = (surprise(apart), surprise(together));
    assert!(apart > 1.5 * together, "{apart} {together}");
}

#[test]
fn weighs_quoted_text_less() {
    check("rename the file to \"weather forecast for the city.txt\"", "rename_file");
}

#[test]
fn reports_that_no_tool_fits() {
    let index = index();
    let foreign =
        ["sing me a lullaby about dragons", "factorise the polynomial over a finite field", "给我讲个笑话"];
    for request in foreign {
        let ranking = index.rank(&SearchRequest::new(request));
        assert!(ranking.fitting().is_empty(), "{request}: {} {:?}", ranking.confidence, ranking.evidence);
    }
    let served = [
        "weather forecast for Kyoto",
        "send an email to Bob",
        "send_emial",
        "查询天气预报",
        "delete the file a.txt",
    ];
    for request in served {
        let ranking = index.rank(&SearchRequest::new(request));
        assert!(!ranking.fitting().is_empty(), "{request}: {} {:?}", ranking.confidence, ranking.evidence);
    }
}

#[test]
fn finds_nothing_for_empty_request() {
    for request in ["", "   ", "🙂", "the of and", "\u{0}\u{202e}"] {
        let index = index();
        let ranking = index.rank(&SearchRequest::new(request));
        assert!(ranking.hits.is_empty() && !ranking.fits, "{request:?}");
    }
    let empty = ToolIndex::new([], RankingSettings::default());
    assert!(empty.is_empty() && empty.rank(&SearchRequest::new("weather")).hits.is_empty());
}

#[test]
fn score_is_the_sum_of_its_components() {
    let index = index();
    let past = [past("get_forecast", 3.0, Some(1.0))];
    for request in ["weather forecast", "明天天气", "get_forecast", "an apartment"] {
        for hit in index.rank(&SearchRequest::new(request).past(&past)).hits {
            assert!((hit.parts.sum() - hit.score).abs() < 1e-3, "{request}: {hit:?}");
        }
    }
    let by_name = index.rank(&SearchRequest::new("get_forecast"));
    assert!(by_name.hits[0].parts.named > 0.0);
    let by_dictionary = index.rank(&SearchRequest::new("天气"));
    assert!(by_dictionary.hits[0].parts.cross_language > 0.0);
    assert!(index.rank(&SearchRequest::new("apartment")).hits[0].parts.related > 0.0);
}

fn past(name: &str, similar_successes: f32, success_rate: Option<f32>) -> ToolHistory {
    ToolHistory {
        source: Source::Server(ServerId::new("weather")),
        name: ToolName::new(name),
        similar_successes,
        success_rate,
    }
}

#[test]
fn history_raises_score_and_breaks_ties() {
    let twins =
        || ["alpha", "beta", "gamma"].map(|name| tool("weather", name, "Weather forecast for a city"));
    let index = ToolIndex::new(twins(), RankingSettings::default());
    let order = |past: &[ToolHistory]| -> Vec<String> {
        let ranking = index.rank(&SearchRequest::new("weather forecast").past(past));
        ranking.hits.iter().map(|hit| hit.tool.name().to_string()).collect()
    };
    assert_eq!(order(&[]), ["alpha", "beta", "gamma"]);
    assert_eq!(order(&[past("gamma", 4.0, None)]), ["gamma", "alpha", "beta"]);
    assert_eq!(
        order(&[past("alpha", 0.0, Some(0.1)), past("gamma", 0.0, Some(0.9))]),
        ["gamma", "beta", "alpha"]
    );
    assert_eq!(order(&[past("unknown", 9.0, None)]), ["alpha", "beta", "gamma"]);
    assert_eq!(order(&[past("beta", f32::NAN, Some(f32::NAN))]).len(), 3);
}

/// Embeds texts by their letter frequencies, which suffices to test that vectors are requested and used.
#[derive(Debug)]
struct LetterEmbedder;

impl Embedder for LetterEmbedder {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, EmbeddingError> {
        let vector = |text: &&str| {
            let mut counts = [0.0_f32; 26];
            for byte in text.bytes().filter(u8::is_ascii_lowercase) {
                counts[usize::from(byte - b'a')] += 1.0;
            }
            let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt().max(1.0);
            counts.map(|count| count / length).into()
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[test]
fn similarity_is_a_score_component_and_follows_updates() {
    let index = index().with_embedder(Arc::new(LetterEmbedder)).unwrap();
    let meaning = |index: &ToolIndex, name: &str| {
        let ranking = index.rank(&SearchRequest::new("zyzzyva quiz jazz").limit(100));
        ranking.hits.iter().find(|hit| hit.tool.name().as_str() == name).map(|hit| hit.parts.meaning)
    };
    assert!(meaning(&index, "hotel_search").is_some_and(|part| part > 0.0));
    let source = Source::Server(ServerId::new("travel"));
    let changed = index.replace_source(&source, [tool("travel", "jazz_quiz", "zyzzyva quiz jazz")]).unwrap();
    assert_eq!(meaning(&changed, "hotel_search"), None);
    assert!(meaning(&changed, "jazz_quiz") > meaning(&changed, "delete_file"));
}

/// Returns one vector too few.
#[derive(Debug)]
struct TooFewVectors;

impl Embedder for TooFewVectors {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, EmbeddingError> {
        Ok(texts.iter().skip(1).map(|_| Box::from([1.0])).collect())
    }
}

#[test]
fn rejects_encoder_with_too_few_vectors() {
    let error = index().with_embedder(Arc::new(TooFewVectors)).unwrap_err();
    assert_eq!(error.to_string(), "the model gave 11 vectors for 12 texts");
}

/// Counts the embedded texts.
#[derive(Debug, Default)]
struct CountingEmbedder(AtomicUsize);

impl Embedder for CountingEmbedder {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Box<[f32]>>, EmbeddingError> {
        self.0.fetch_add(texts.len(), Ordering::Relaxed);
        LetterEmbedder.embed(texts)
    }
}

#[test]
fn does_not_recompute_cached_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors.bin");
    let run = |model: &str, tools: Vec<Tool>| {
        let counting = Arc::new(CountingEmbedder::default());
        let cache = VectorCache::new(&file, Fingerprint::of([model]));
        let plain = ToolIndex::new(tools, RankingSettings::default());
        let index = plain.with_cached_embedder(Arc::<CountingEmbedder>::clone(&counting), cache).unwrap();
        let calls = counting.0.load(Ordering::Relaxed);
        let ranking = index.rank(&SearchRequest::new("zyzzyva quiz jazz weather"));
        let order: Vec<(String, u32)> =
            ranking.hits.iter().map(|hit| (hit.tool.name().to_string(), hit.score.to_bits())).collect();
        (calls, order)
    };
    let all = office().len();
    let (calls, first) = run("a", office());
    assert_eq!(calls, all);
    let (calls, second) = run("a", office());
    assert_eq!((calls, &second), (0, &first), "nothing is new, and nothing ranks otherwise");
    let mut more = office();
    more.push(tool("travel", "jazz_quiz", "zyzzyva quiz jazz"));
    assert_eq!(run("a", more.clone()).0, 1);
    assert_eq!(run("b", more.clone()).0, all + 1, "another model knows nothing of it");
    std::fs::write(&file, b"damaged").unwrap();
    assert_eq!(run("b", more.clone()).0, all + 1);
    assert_eq!(run("b", more).0, 0, "what was damaged was written anew");
}
