"""What Link-Eval says, in Chinese."""

from __future__ import annotations

CHINESE = {
    r"Statement fluency was not measured: no chat model serves that role": "未衡量语句流畅度：没有对话模型承担该项",
    r"There is no statement to evaluate": "没有可评估的语句",
    r"Only the first (\d+) statements were compared with one another": "仅对前 {1} 句做了两两比较",
}
