"""检查中文提交说明的格式。"""

import unicodedata


class CheckCommitMessage:
    name = "check_commit_message"
    description = "检查 Git 提交说明的格式，列出每个问题所在的行和改法"
    read_only = True
    idempotent = True
    tags = ["code"]

    EMPTY = ("修改了", "更新了", "改了", "提交", "更新", "修改", "update", "fix bug", "wip")

    def execute(self, message: str, title_width: int = 50, body_width: int = 72) -> dict:
        """检查一条提交说明。

        Args:
            message: 提交说明的全文
            title_width: 第一行的最大宽度
            body_width: 正文每行的最大宽度
        """
        problems = []
        lines = message.rstrip().split("\n")
        title = lines[0]
        if not title.strip():
            problems.append({"line": 1, "problem": "第一行为空", "instead": "用一句话写明现在的状态"})
        if width(title) > 2 * title_width:
            problems.append({"line": 1, "problem": f"第一行宽度为 {width(title)}，超过 {2 * title_width}",
                             "instead": "缩短，把细节移到正文"})
        if title.rstrip().endswith(("。", ".")):
            problems.append({"line": 1, "problem": "第一行以句号结尾", "instead": "去掉句号"})
        if title.strip().lower() in self.EMPTY:
            problems.append({"line": 1, "problem": "第一行没有说明内容", "instead": "写明改动之后有什么不同"})
        if len(lines) > 1 and lines[1].strip():
            problems.append({"line": 2, "problem": "第二行不为空", "instead": "在标题和正文之间空一行"})
        for at, line in enumerate(lines[2:], start=3):
            if width(line) > 2 * body_width:
                problems.append({"line": at, "problem": "这一行太长", "instead": "换行"})
        return {"good": not problems, "problems": problems}


def width(text):
    """宽度：汉字占两格。"""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
