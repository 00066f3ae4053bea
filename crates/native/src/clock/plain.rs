//! Normalizes typed text for the tables of the clock: half-width, lower case and simplified Chinese.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Pairs of a traditional or Japanese character and its simplified form, for names of places and times.
const SIMPLIFIED: &str = "両两亞亚伝传佈布來来個个倫伦傑杰內内兩两凱凯別别剛刚劍剑務务勛勋勞劳勳勋區区參参喬乔國国園园圖图堅坚塢坞奧奥寧宁屬属岡冈峴岘島岛崑昆崗岗嶼屿幾几広广庫库廈厦廣广後后復复徹彻愛爱慶庆\
     懷怀戶户戸户揚扬撾挝敘叙時时晉晋曆历東东査查極极標标橋桥橫横檳槟歷历沖冲沢泽浜滨湯汤準准溫温滿满漢汉澤泽濟济濱滨瀋沈灘滩灣湾烏乌無无煙烟熱热爾尔猶犹現现瑪玛瓊琼畢毕當当發发盧卢磯矶\
     祕秘禮礼穀谷窩窝節节約约納纳紐纽紹绍給给維维緬缅縄绳繩绳纍累羅罗羣群聖圣聯联脫脱臘腊臥卧臺台舊旧茲兹莊庄華华萊莱萬万葉叶蓋盖薩萨蘇苏蘭兰衆众衛卫衝冲裏里裡里複复覇霸訥讷設设誇夸誌志\
     誕诞諸诸諾诺謝谢讓让讚赞貝贝貴贵買买費费賈贾賓宾賴赖賽赛贊赞輔辅連连週周過过達达遜逊邁迈邊边鄭郑釐厘銀银錫锡鍾钟鎭镇鎮镇鐘钟長长門门開开間间関关關关陸陆陽阳靈灵韋韦韓韩頓顿領领顛颠\
     馬马騷骚魯鲁鮮鲜鳳凤鹽盐麗丽麥麦黃黄黒黑點点齊齐齋斋龍龙";

static TABLE: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let mut characters = SIMPLIFIED.chars();
    std::iter::from_fn(|| Some((characters.next()?, characters.next()?))).collect()
});

/// Normalizes a text.
pub(super) fn plain(text: &str) -> String {
    text.trim().chars().map(character).flat_map(char::to_lowercase).collect()
}

fn character(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '−' | '–' => '-',
        '\u{3000}' => ' ',
        _ => TABLE.get(&c).copied().unwrap_or(c),
    }
}
