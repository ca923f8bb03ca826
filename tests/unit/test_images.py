"""Images of prompt rows: what a field may hold, what is refused, and what a model gets to see."""

import base64
import io
import json
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from corl.config import PromptsConfig
from corl.data import images
from corl.data.images import ImageRef, ImageSizes, image_refs, open_image
from corl.data.prompts import align, load_prompts
from corl.data.reading import read_completion, read_label
from corl.errors import PromptError
from tiny_vision import picture


def encoded(image, kind="PNG", **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def seen(image, kind="PNG", long_side=64, **options):
    return open_image(ImageRef("row 1, image 1", long_side, data=encoded(image, kind, **options)))


def refs(value, base):
    return image_refs(value, base=base, long_side=64, where="file f, row 3")


def test_every_form_of_an_image_is_the_same_picture(tmp_path):
    image = picture(9, 7)
    data = encoded(image)
    (tmp_path / "a.png").write_bytes(data)
    text = base64.b64encode(data).decode()
    forms = [
        "a.png",
        str(tmp_path / "a.png"),
        data,
        text,
        f"data:image/png;base64,{text}",
        {"bytes": data, "path": "elsewhere.png"},
        {"bytes": None, "path": "a.png"},
    ]
    for form in forms:
        for value in (form, [form]):
            (ref,) = refs(value, tmp_path)
            assert np.array_equal(np.asarray(open_image(ref)), np.asarray(image))
    assert refs(None, tmp_path) == refs("", tmp_path) == refs([], tmp_path) == ()
    assert [ref.where[-7:] for ref in refs(["a.png", "a.png"], tmp_path)] == ["image 1", "image 2"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, "row 3, image 1: is int"),
        ([["a.png"]], "row 3, image 1: is list"),
        ({"path": None}, "row 3, image 1: is NoneType"),
        ("https://example.org/a.png", "images are not downloaded"),
        ("data:image/png;base64,???", "is no base64"),
    ],
)
def test_what_is_no_image_is_refused_when_rows_are_read(value, said, tmp_path):
    with pytest.raises(PromptError, match=said):
        refs(value, tmp_path)


def bomb(width, height) -> bytes:
    """A PNG whose header announces more than it holds."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 100))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no PNG"),
        (b"not an image at all", "is no PNG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is no PNG"),
        (encoded(picture(40, 40))[:900], "is broken"),
        (encoded(picture(40, 40), "JPEG")[:400], "is broken"),
        (bomb(9000, 9000), "9000 x 9000 pixels, and at most 64 million"),
        (bomb(60000, 60000), "pixels, and at most 64 million"),
        (encoded(picture(1, 1)), "1 x 1 pixels, which show nothing"),
        (encoded(picture(30, 1)), "30 x 1 pixels, which show nothing"),
    ],
)
def test_bad_files_are_named_and_refused(data, said):
    with pytest.raises(PromptError, match=said) as caught:
        open_image(ImageRef("file f, row 3, image 2", 64, data=data))
    assert str(caught.value).startswith("file f, row 3, image 2: ")


def test_a_bomb_is_refused_by_its_header(monkeypatch):
    monkeypatch.setattr(Image.Image, "load", lambda *_: pytest.fail("it was decoded"))
    with pytest.raises(PromptError, match="scale it down"):
        open_image(ImageRef("row 1", 64, data=bomb(9000, 9000)))


def test_missing_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(PromptError, match=r"row 3, image 1: there is no file .*gone\.png"):
        open_image(refs("gone.png", tmp_path)[0])
    (tmp_path / "folder").mkdir()
    with pytest.raises(PromptError, match="there is no file"):
        open_image(refs("folder", tmp_path)[0])


def test_images_are_scaled_down_and_never_up():
    assert seen(picture(200, 100)).size == (64, 32)
    assert seen(picture(100, 200)).size == (32, 64)
    assert seen(picture(640, 2)).size == (64, 1)
    assert seen(picture(10, 20)).size == (10, 20)


def test_a_turned_photograph_stands_upright():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    image = Image.new("RGB", (20, 10), "white")
    image.paste("black", (0, 0, 10, 10))
    upright = seen(image, "JPEG", exif=exif)
    assert upright.size == (10, 20)
    assert np.asarray(upright)[2, 5].max() < 60 and np.asarray(upright)[17, 5].min() > 200


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_every_mode_becomes_rgb(mode):
    if mode == "I;16":
        image = Image.fromarray(np.full((5, 4), 0x8000, dtype=np.uint16))
    else:
        grey = Image.new("RGB", (4, 5), (128, 128, 128))
        image = grey.convert(mode, palette=Image.Palette.ADAPTIVE)
    result = seen(image, "TIFF" if mode in ("CMYK", "LA") else "PNG")
    assert result.mode == "RGB" and result.size == (4, 5)
    if mode != "1":
        assert abs(np.asarray(result).astype(int) - 128).max() <= 2


def test_what_is_transparent_shows_white():
    image = Image.new("RGBA", (4, 4), (200, 0, 0, 0))
    assert np.asarray(seen(image)).min() == 255
    palette = Image.new("P", (4, 4), 0)
    palette.putpalette([200, 0, 0])
    assert np.asarray(seen(palette, transparency=0)).min() == 255


def test_the_first_picture_of_an_animation_is_taken():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("white", "black")]
    image = seen(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert np.asarray(image).min() == 255


def write(tmp_path, rows):
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_prompt_rows_carry_references_and_open_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "open_image", lambda _: pytest.fail("it was opened"))
    rows = [
        {"prompt": "one", "pictures": "a.png"},
        {"prompt": "two", "pictures": ["a.png", {"path": "b.png"}]},
        {"prompt": "none", "pictures": []},
    ]
    loaded = load_prompts(
        PromptsConfig(file=str(write(tmp_path, rows)), images_field="pictures", image_long_side=99)
    ).rows
    assert [len(row.images) for row in loaded] == [1, 2, 0]
    assert loaded[1].images[1].path == tmp_path / "b.png"
    assert {ref.long_side for row in loaded for ref in row.images} == {99}
    assert "row 2, image 2" in loaded[1].images[1].where


def test_prompts_without_the_key_stay_text(tmp_path):
    path = write(tmp_path, [{"prompt": "<image>one", "images": ["a.png"]}])
    (row,) = load_prompts(PromptsConfig(file=str(path))).rows
    assert row.images == () and row.text == "<image>one"


def test_marks_of_images_leave_the_text(tmp_path):
    rows = [
        {"prompt": "<image>\nHow many?", "images": ["a.png"]},
        {"prompt": "is <image> in the text", "images": ["a.png", "b.png"]},
    ]
    path = write(tmp_path, rows)
    loaded = load_prompts(PromptsConfig(file=str(path), images_field="images")).rows
    assert [row.text for row in loaded] == ["How many?", "is <image> in the text"]


def test_a_missing_field_is_named(tmp_path):
    path = write(tmp_path, [{"prompt": "one"}])
    with pytest.raises(PromptError, match=r"row 1: no field 'images'; set `prompts.images_field`"):
        load_prompts(PromptsConfig(file=str(path), images_field="images"))


def test_aligned_rows_keep_their_own_images(tmp_path):
    path = write(tmp_path, [{"prompt": "one", "images": ["a.png"]}])
    config = PromptsConfig(file=str(path), images_field="images")
    aligned = align({"a": load_prompts(config), "b": load_prompts(config)})
    assert len(aligned["b"].rows[0].images) == 1


def test_an_image_column_of_a_parquet_file_is_left_encoded(tmp_path):
    datasets = pytest.importorskip("datasets")
    held = [{"bytes": encoded(picture(6, 5, seed=seed)), "path": None} for seed in range(2)]
    table = datasets.Dataset.from_dict({"prompt": ["a", "b"], "image": held})
    path = tmp_path / "p.parquet"
    table.cast_column("image", datasets.Image(decode=False)).to_parquet(str(path))
    rows = load_prompts(PromptsConfig(file=str(path), images_field="image")).rows
    assert [row.images[0].data for row in rows] == [one["bytes"] for one in held]
    assert open_image(rows[1].images[0]).size == (6, 5)


def test_sizes_are_looked_up_once_an_image(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded(picture(80, 40)))
    sizes = ImageSizes()
    assert sizes.of(refs("a.png", tmp_path)[0]) == (64, 32)
    (tmp_path / "a.png").unlink()
    assert sizes.of(refs("a.png", tmp_path)[0]) == (64, 32)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("It is <answer>B</answer>", "B"),
        ("so \\boxed{B}.", "B"),
        ("<answer>7 cm</answer>", "B"),
        ("The answer is (A).", "A"),
        ("<answer>9</answer>", None),
    ],
)
def test_answers_of_rows_with_pictures_and_options(tmp_path, said, read):
    row = {"prompt": "?", "images": ["a.png"], "choices": ["5 cm", "7 cm"], "answer": "B"}
    path = write(tmp_path, [row])
    config = PromptsConfig(file=str(path), images_field="images", kind="choice")
    (loaded,) = load_prompts(config).rows
    answer = read_completion(said, loaded)
    assert (None if answer is None else answer.key) == (
        None if read is None else read_label(replace(loaded, label=read)).key
    )
