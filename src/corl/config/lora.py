"""Low-rank adapters of one agent (Hu et al. 2021), and the form its frozen base is kept in."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from corl.config.section import Section


class LoraConfig(Section):
    """Train low-rank adapters of linear layers in place of the model's own weights."""

    rank: PositiveInt = 16
    """Rank of every adapter."""
    alpha: PositiveInt = 32
    """The adapter's part is scaled by alpha / rank."""
    targets: tuple[str, ...] | Literal["auto"] = "auto"
    """Ends of the names of the layers that get one, such as q_proj; auto: every linear layer of the
    language model but its head."""
    save: Literal["adapter", "merged"] = "adapter"
    """What `final/` holds: the adapter alone, for peft, or a whole ordinary checkpoint."""
    quantize: Literal["none", "nf4", "int8"] = "none"
    """Keep the frozen base in 4 or 8 bits (QLoRA, Dettmers et al. 2023); needs corl[qlora]."""
