"""Words the bank does not use, and what ``book/notation.md`` says instead."""

VARIANTS = {
    "en": {
        "feedforward": "feed-forward",
        "look-ahead mask": "causal mask",
        "pad mask": "padding mask",
        "encoder-decoder attention": "cross-attention",
    },
    "zh": {
        "集束搜索": "束搜索",
        "波束搜索": "束搜索",
        "词汇表": "词表",
        "译码器": "解码器",
        "互注意力": "交叉注意力",
        "隐状态": "隐藏状态",
        "遮罩": "掩码",
        "遮蔽": "掩码",
        "贪婪": "贪心",
        "层标准化": "层归一化",
        "层规范化": "层归一化",
        "梯度弥散": "梯度消失",
        "梯度剪裁": "梯度裁剪",
        "参数数量": "参数量",
        "注意力得分": "注意力分数",
        "令牌": "词元",
        "热身": "预热",
        "前向网络": "前馈网络",
        "语境向量": "上下文向量",
    },
}
