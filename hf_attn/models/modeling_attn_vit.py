# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
"""Read a picture as a sentence of patches, with attention from every patch to every other.

    states = dropout([class token; patch_1 E; ...; patch_n E] + position)
    N x    states = states + attention(norm(states));  states = states + feed_forward(norm(states))
    class of the picture = W norm(states)[0]

Paper: Dosovitskiy 2021 (arXiv 2010.11929), eq. 1-4. Nothing else knows that it is a picture: no convolution, no
neighbourhood. Published alternatives are options of the configuration: the mean of the patches in place of a class
token (Zhai 2022, 2106.04560), fixed positions along rows and columns (He 2022, 2111.06377). A picture can also teach
itself: patches are masked, and their pixels predicted (SimMIM, Xie 2022, 2111.09886).

Axis names: batch, channels, height, width, rows, columns, patches = rows * columns, length = class token + patches.
Read before: multihead.py (attention), layers.py (one layer), heads.py (what is read off the states).
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    ImageClassifierOutput,
    MaskedImageModelingOutput,
)
from transformers.utils.generic import can_return_tuple

from .base import AttnPreTrainedModel
from .configuration_attn_vit import AttnVitConfig
from .heads import Pooler, average, classification_loss, pool, wide
from .inputs import check_tensor
from .layers import NORMS, EncoderLayer, FeedForward
from .multihead import MultiHeadAttention
from .positions import sinusoidal


class AttnVitPreTrainedModel(AttnPreTrainedModel):
    """What the classes of this file have in common."""

    config: AttnVitConfig
    main_input_name = "pixel_values"
    input_modalities = ("image",)  # type: ignore[assignment]
    supports_gradient_checkpointing = True
    _no_split_modules = ["EncoderLayer"]
    _input_embed_layer = "patch_embeddings"
    _supports_sdpa = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True

    def _init_weights(self, module: nn.Module):
        """Fill the parameters of one module, unless they were loaded; those that are no layer's are normal too."""
        super()._init_weights(module)
        if isinstance(module, PatchEmbedding):
            for parameter in module.parameters(recurse=False):
                init.normal_(parameter, std=self.config.initializer_range)


def make_norm(config: AttnVitConfig) -> nn.Module:
    """Make the norm of one sublayer."""
    eps = {} if config.layer_norm_eps is None else {"eps": config.layer_norm_eps}
    return NORMS[config.norm_type](config.hidden_size, **eps)


def make_layer(config: AttnVitConfig) -> EncoderLayer:
    """Make one layer."""
    return EncoderLayer(
        self_attention=MultiHeadAttention(
            config.hidden_size,
            config.num_attention_heads,
            bias=config.qkv_bias,
            output_bias=True,
            dropout=config.attention_dropout,
        ),
        feed_forward=FeedForward(config.hidden_size, config.intermediate_size, config.activation_function),
        make_norm=partial(make_norm, config),
        norm_first=True,
        dropout=config.dropout,
    )


# Patches


def to_patches(pixels: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Cut pictures into patches, row by row from the upper left.

    Args:
        pixels: (batch, channels, height, width)
        patch_size: Height and width of a patch; it divides those of the pictures.

    Returns:
        (batch, patches, channels * patch_size * patch_size), of each patch the channels one after the other.
    """
    cut = pixels.unflatten(3, (-1, patch_size)).unflatten(2, (-1, patch_size))  # (b, channels, rows, P, columns, P)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def from_patches(patches: torch.Tensor, patch_size: int, rows: int) -> torch.Tensor:
    """Put patches together again: the inverse of `to_patches`.

    Args:
        patches: (batch, patches, channels * patch_size * patch_size)
        patch_size: Height and width of a patch.
        rows: Number of rows of patches.

    Returns:
        (batch, channels, height, width)
    """
    cut = patches.unflatten(2, (-1, patch_size, patch_size)).unflatten(1, (rows, -1))
    return cut.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)  # (b, channels, rows, P, columns, P), merged


def sinusoidal_grid(rows: int, columns: int, dim: int, device: torch.device) -> torch.Tensor:
    """Compute the fixed vectors of patches: one half tells the row, the other the column.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        dim: Width of a vector; a multiple of 4.
        device: Where to put the result.

    Returns:
        (rows * columns, dim) float32.
    """
    row, column = torch.meshgrid(
        torch.arange(rows, device=device), torch.arange(columns, device=device), indexing="ij"
    )  # (rows, columns)
    halves = [sinusoidal(number.flatten(), dim // 2, order="concatenated") for number in (row, column)]
    return torch.cat(halves, dim=-1)


def resize_grid(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Stretch the vectors of a square grid over another one, bicubically: Dosovitskiy 2021, section 3.2.

    Args:
        table: (patches, hidden_size), of a square.
        rows: Number of rows of the new grid.
        columns: Number of its columns.

    Returns:
        (rows * columns, hidden_size)
    """
    size = round(table.shape[0] ** 0.5)
    if (rows, columns) == (size, size):
        return table
    grid = table.T.unflatten(1, (size, size))[None]  # (1, hidden_size, rows, columns)
    grid = F.interpolate(grid, size=(rows, columns), mode="bicubic", align_corners=False)
    return grid[0].flatten(1).T


class PatchEmbedding(nn.Module):
    """states = dropout([class token; patches E] + position), with a mask token in place of what is hidden.

    Args:
        config: The model's configuration.
        use_mask_token: Whether there is a mask token.
    """

    def __init__(self, config: AttnVitConfig, use_mask_token: bool):
        super().__init__()
        width = config.hidden_size
        self.grid_size = config.grid_size
        self.patch_size = config.patch_size
        self.position_type = config.position_type
        self.patch_embeddings = nn.Linear(config.num_channels * config.patch_size**2, width)
        self.class_token = nn.Parameter(torch.empty(width)) if config.class_tokens else None
        self.mask_token = nn.Parameter(torch.empty(width)) if use_mask_token else None
        self.positions = None
        if config.position_type == "learned":
            self.positions = nn.Parameter(torch.empty(config.class_tokens + config.grid_size**2, width))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, pixels: torch.Tensor, masked: torch.Tensor | None = None) -> torch.Tensor:
        """Embed pictures.

        Args:
            pixels: (batch, channels, height, width)
            masked: (batch, patches), True for patches that are hidden; None for none.

        Returns:
            (batch, length, hidden_size)
        """
        rows, columns = (size // self.patch_size for size in pixels.shape[2:])
        states = self.patch_embeddings(to_patches(pixels, self.patch_size))  # (batch, patches, hidden_size)
        if masked is not None:
            states = torch.where(masked[..., None], self.mask_token, states)
        if self.position_type == "sinusoidal":
            table = sinusoidal_grid(self.grid_size, self.grid_size, states.shape[-1], states.device)
            states = states + resize_grid(table, rows, columns).to(states.dtype)
        first = self.class_token
        if self.positions is not None:
            patches = self.grid_size**2
            states = states + resize_grid(self.positions[-patches:], rows, columns)
            first = None if first is None else first + self.positions[0]
        if first is not None:
            states = torch.cat([first.expand(len(states), 1, -1), states], dim=1)
        return self.dropout(states)


def check_pixels(config: AttnVitConfig, pixel_values: object, any_size: bool) -> torch.Tensor:
    """Refuse what is no batch of pictures of the model.

    Args:
        config: The model's configuration.
        pixel_values: (batch, channels, height, width)
        any_size: Whether pictures may have another size than the configuration's.

    Returns:
        The pictures.

    Raises:
        TypeError: If they are no tensor of floating-point numbers.
        ValueError: If they have another number of channels or another size, or cannot be cut into patches.
    """
    pixels = check_tensor("pixel_values", pixel_values, ("batch", "channels", "height", "width"))
    if not pixels.is_floating_point():
        raise TypeError(f"pixel_values must be floating-point numbers, as image processors make, got {pixels.dtype}")
    channels, *size = pixels.shape[1:]
    if channels != config.num_channels:
        raise ValueError(f"pixel_values has {channels} channels; the model has num_channels={config.num_channels}")
    if any_size and (min(size) == 0 or any(side % config.patch_size for side in size)):
        raise ValueError(
            f"pixel_values has pictures of {size[0]} x {size[1]}; both must be multiples of "
            f"patch_size={config.patch_size}, at least 1"
        )
    if not any_size and size != [config.image_size] * 2:
        raise ValueError(
            f"pixel_values has pictures of {size[0]} x {size[1]}; the model has image_size={config.image_size}. Resize "
            "them, or set interpolate_pos_encoding=True"
        )
    return pixels


def check_masked(config: AttnVitConfig, masked: object, pixels: torch.Tensor) -> torch.Tensor:
    """Refuse what does not say which patches of the pictures, (batch, channels, height, width), are masked.

    Returns:
        (batch, patches), boolean.

    Raises:
        TypeError: If it is no tensor of truth values or whole numbers.
        ValueError: If it has another shape, or another number than 0 and 1.
    """
    masked = check_tensor("bool_masked_pos", masked, ("batch", "patches"))
    if masked.is_floating_point() or masked.is_complex():
        raise TypeError(f"bool_masked_pos must be boolean, or 0 and 1, got {masked.dtype}")
    shape = (len(pixels), pixels.shape[2] * pixels.shape[3] // config.patch_size**2)
    if tuple(masked.shape) != shape:
        raise ValueError(f"bool_masked_pos must have the shape {shape} of the patches, got {tuple(masked.shape)}")
    looked_at = masked.device.type == "cpu" and not torch.compiler.is_compiling()
    if looked_at and masked.dtype != torch.bool and not bool(((masked == 0) | (masked == 1)).all()):
        raise ValueError("bool_masked_pos has other numbers than 0 and 1")
    return masked.bool()


# Models


class AttnVitModel(AttnVitPreTrainedModel):
    """Every patch attends to every patch.

    Args:
        config: The model's configuration.
        add_pooler: Whether there is a pooler; None for what the configuration says.
        use_mask_token: Whether there is a token that hides patches.
    """

    def __init__(self, config: AttnVitConfig, add_pooler: bool | None = None, use_mask_token: bool = False):
        super().__init__(config)
        self.embeddings = PatchEmbedding(config, use_mask_token)
        self.layers = nn.ModuleList(make_layer(config) for _ in range(config.num_hidden_layers))
        self.final_norm = make_norm(config)
        has_pooler = config.use_pooler if add_pooler is None else add_pooler
        self.pooler = Pooler(config.hidden_size, config.pooler_activation) if has_pooler else None
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        pixel_values: torch.Tensor | None = None,
        bool_masked_pos: torch.Tensor | None = None,
        interpolate_pos_encoding: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPooling:
        """Encode pictures.

        Args:
            pixel_values: (batch, channels, height, width), as an image processor makes them.
            bool_masked_pos: (batch, patches), 1 for patches that are hidden; row by row from the upper left.
            interpolate_pos_encoding: Whether pictures may have another size than the configuration's; their positions
                are then interpolated.
            output_attentions: Whether to return the attention weights: `attentions`, a tuple over layers of (batch,
                heads, length, length).
            output_hidden_states: Whether to return the states before each layer and after the last one, not normed.
            **kwargs: Ignored.

        Returns:
            The states (batch, length, hidden_size), of the class token first, then of the patches; the vector of the
            picture (batch, hidden_size) if there is a pooler; and what was asked for.

        Raises:
            TypeError: If an argument is no tensor of the right kind.
            ValueError: If pictures or masks have another shape than they must, or patches are to be hidden and there is
                no mask token.
        """
        config = self.config
        output_attentions = config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        pixels = check_pixels(config, pixel_values, any_size=bool(interpolate_pos_encoding))
        masked = None if bool_masked_pos is None else check_masked(config, bool_masked_pos, pixels)
        if masked is not None and self.embeddings.mask_token is None:
            raise ValueError(
                "bool_masked_pos hides patches, but the model has no mask token: open it with use_mask_token=True, or "
                "as AttnVitForMaskedImageModeling"
            )

        states = self.embeddings(pixels.to(self.dtype), masked)
        all_states, all_weights = (states,), ()
        for layer in self.layers:
            states, weights = layer(
                states, output_attentions=output_attentions, implementation=config._attn_implementation
            )
            all_states += (states,)
            all_weights += (weights,)
        states = self.final_norm(states)

        pooled = None if self.pooler is None else self.pooler(pool(states, None, config.pooling)[:, None])
        return BaseModelOutputWithPooling(
            last_hidden_state=states,
            pooler_output=pooled,
            hidden_states=all_states if output_hidden_states else None,
            attentions=all_weights if output_attentions else None,
        )


class AttnVitForImageClassification(AttnVitPreTrainedModel):
    """Say what is to be seen in a picture.

    Args:
        config: The model's configuration; `num_labels` and `problem_type` as in transformers.
    """

    def __init__(self, config: AttnVitConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.model = AttnVitModel(config, add_pooler=False)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        pixel_values: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        interpolate_pos_encoding: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> ImageClassifierOutput:
        """Score the classes of each picture.

        Args:
            pixel_values: (batch, channels, height, width), as an image processor makes them.
            labels: A class or number for each picture, (batch,), or several, (batch, num_labels); heads.py says which.
                -100 counts for nothing.
            interpolate_pos_encoding: Whether pictures may have another size than the configuration's.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states before each layer and after the last one.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, num_labels), and what was asked for.

        Raises:
            ValueError: If the labels do not fit the problem, and what `AttnVitModel` raises.
        """
        outputs = self.model(
            pixel_values=pixel_values,
            interpolate_pos_encoding=interpolate_pos_encoding,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.classifier(pool(outputs.last_hidden_state, None, self.config.pooling))
        loss = None
        if labels is not None:
            loss = classification_loss(logits, labels, self.config.problem_type, kwargs.get("num_items_in_batch"))
        return ImageClassifierOutput(loss, logits, outputs.hidden_states, outputs.attentions)


class AttnVitForMaskedImageModeling(AttnVitPreTrainedModel):
    """Predict the pixels of patches that are hidden: SimMIM, Xie 2022 (arXiv 2111.09886).

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnVitConfig):
        super().__init__(config)
        self.model = AttnVitModel(config, add_pooler=False, use_mask_token=True)
        self.pixels = nn.Linear(config.hidden_size, config.num_channels * config.patch_size**2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        pixel_values: torch.Tensor | None = None,
        bool_masked_pos: torch.Tensor | None = None,
        interpolate_pos_encoding: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> MaskedImageModelingOutput:
        """Paint each picture anew.

        Args:
            pixel_values: (batch, channels, height, width), as an image processor makes them.
            bool_masked_pos: (batch, patches), 1 for patches that are hidden and predicted; row by row from the upper
                left. Without it nothing is hidden.
            interpolate_pos_encoding: Whether pictures may have another size than the configuration's.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states before each layer and after the last one.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of hidden patches.

        Returns:
            Loss (if `bool_masked_pos` is given), the mean distance |predicted - true| of the pixels of hidden patches;
            reconstruction (batch, channels, height, width), and what was asked for.

        Raises:
            ValueError: What `AttnVitModel` raises.
        """
        outputs = self.model(
            pixel_values=pixel_values,
            bool_masked_pos=bool_masked_pos,
            interpolate_pos_encoding=interpolate_pos_encoding,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        patch_size = self.config.patch_size
        patches = self.pixels(outputs.last_hidden_state[:, self.config.class_tokens :])
        loss = None
        if bool_masked_pos is not None:
            distances = (wide(patches) - to_patches(pixel_values, patch_size)).abs().mean(dim=-1)  # (batch, patches)
            masked = bool_masked_pos.bool().to(distances.device)
            loss = average(distances, masked, kwargs.get("num_items_in_batch"))
        return MaskedImageModelingOutput(
            loss=loss,
            reconstruction=from_patches(patches, patch_size, rows=pixel_values.shape[2] // patch_size),
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


AUTO_CLASSES = {
    "AutoModel": AttnVitModel,
    "AutoModelForImageClassification": AttnVitForImageClassification,
    "AutoModelForMaskedImageModeling": AttnVitForMaskedImageModeling,
}
