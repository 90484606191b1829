//! Traditional Chinese characters to simplified ones.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// Returns the simplified form of a traditional character. Covers the characters common in customer
/// service; returns any other unchanged.
pub(crate) fn to_simplified(c: char) -> char {
    static PAIRS: OnceLock<FxHashMap<char, char>> = OnceLock::new();
    let pairs = PAIRS.get_or_init(|| {
        TRADITIONAL
            .split_whitespace()
            .filter_map(|pair| pair.chars().next().zip(pair.chars().nth(1)))
            .collect()
    });
    pairs.get(&c).copied().unwrap_or(c)
}

/// Pairs of a traditional character and its simplified form.
const TRADITIONAL: &str = "\
來来 係系 個个 們们 備备 傳传 價价 億亿 償偿 優优 儲储 兩两 凍冻 別别 動动 務务 匯汇 區区 \
協协 員员 問问 單单 嗎吗 嚴严 圖图 團团 報报 場场 壓压 壞坏 壽寿 夠够 學学 實实 寬宽 專专 \
對对 導导 屬属 師师 帳账 帶带 幫帮 幾几 廳厅 後后 從从 復复 憑凭 憶忆 應应 戶户 掛挂 換换 \
損损 據据 斷断 時时 會会 東东 條条 業业 樓楼 標标 機机 檔档 歷历 氣气 沒没 準准 溫温 濕湿 \
為为 無无 熱热 燒烧 現现 異异 療疗 發发 盜盗 碼码 禮礼 稅税 簡简 簽签 約约 級级 結结 絡络 \
給给 統统 綁绑 經经 網网 緊紧 線线 總总 繫系 續续 習习 聯联 聲声 職职 腦脑 萬万 藍蓝 藥药 \
處处 號号 螢萤 補补 裝装 褲裤 視视 訂订 記记 訟讼 設设 訴诉 診诊 詢询 試试 話话 認认 語语 \
誤误 說说 誰谁 課课 請请 謝谢 證证 議议 護护 變变 貨货 貴贵 買买 貸贷 費费 資资 賠赔 賣卖 \
賬账 購购 車车 軟软 載载 輸输 轉转 辦办 這这 連连 運运 達达 遞递 遲迟 還还 醫医 銀银 銷销 \
錄录 錢钱 錯错 鎖锁 長长 門门 閃闪 開开 間间 關关 陸陆 隊队 險险 隱隐 雙双 雞鸡 離离 雲云 \
電电 韌韧 頁页 預预 頭头 頻频 題题 額额 顏颜 風风 飛飞 飯饭 餘余 館馆 馬马 驗验 體体 魚鱼 \
麵面 麼么 點点";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traditional_characters_become_simplified() {
        let text: String = "帳單扣錯錢，無法登錄".chars().map(to_simplified).collect();
        assert_eq!(text, "账单扣错钱，无法登录");
        assert_eq!(to_simplified('a'), 'a');
    }
}
