"""Checks the samples of test/readers/writeSamples.ts with safetensors, TensorBoard, tokenizers, Pillow, librosa and ONNX, and our
readers with files of pyarrow and of TensorBoard's TFRecord writer; the argument is their directory. What is not installed is
skipped."""

import colorsys
import glob
import io
import json
import os
import sys
import unicodedata


def check_checkpoint(root):
    import numpy
    from safetensors import safe_open

    path = os.path.join(root, "checkpoints", "checkpoint_00123456", "state.safetensors")
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "luthier"}, file.metadata()
        names = {"step", "params/lm/w", "params/lm/b", "slots/m/lm/w", "slots/m/lm/b"}
        assert set(file.keys()) == names, file.keys()
        step = file.get_tensor("step")
        assert step.dtype == numpy.int64 and step.shape == () and step == 123456, step
        weights = file.get_tensor("params/lm/w")
        assert weights.dtype == numpy.float32, weights.dtype
        assert numpy.array_equal(weights, numpy.arange(6, dtype=numpy.float32).reshape(2, 3) / 8), weights
        assert numpy.array_equal(file.get_tensor("params/lm/b"), numpy.array([2, 2.125, 2.25], numpy.float32))
        assert numpy.array_equal(file.get_tensor("slots/m/lm/b"), numpy.full(3, -0.5, numpy.float32))


def check_events(root):
    import numpy
    from PIL import Image
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.plugins.image import metadata as image_metadata
    from tensorboard.util import tensor_util

    directory = os.path.join(root, "summaries", "train")
    assert len(glob.glob(os.path.join(directory, "events.out.tfevents.*"))) == 2
    events = event_accumulator.EventAccumulator(directory)
    events.Reload()
    scalars = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert scalars == {
        "loss": [(1, 0.25), (2, 0.5), (3, 8.0)],
        "learning/lr": [(1, 0.125), (2, 0.125), (3, 0.25)],
    }, scalars
    assert events.Scalars("loss")[0].wall_time == 1700000000
    assert events.Tags()["tensors"] == ["Model", "params/w", "inputs"], events.Tags()
    (text,) = events.Tensors("Model")
    assert tensor_util.make_ndarray(text.tensor_proto).item().decode() == "lm : **α**"
    assert events.SummaryMetadata("Model").plugin_data.plugin_name == "text"
    (histogram,) = events.Tensors("params/w")
    buckets = tensor_util.make_ndarray(histogram.tensor_proto)
    assert buckets.shape == (30, 3) and buckets[:, 2].sum() == 4, buckets
    assert buckets[0, 0] == -1 and abs(buckets[-1, 1] - 2) < 1e-9 and buckets[10, 2] == 2, buckets
    assert events.SummaryMetadata("params/w").plugin_data.plugin_name == "histograms"
    (images,) = events.Tensors("inputs")
    width, height, *pngs = tensor_util.make_ndarray(images.tensor_proto)
    assert (width, height, len(pngs)) == (b"4", b"3", 2), (width, height, len(pngs))
    pixels = numpy.stack([numpy.asarray(Image.open(io.BytesIO(png))) for png in pngs])
    assert numpy.array_equal(pixels, numpy.round(numpy.arange(72) / 71 * 255).reshape(2, 3, 4, 3)), pixels
    plugin = events.SummaryMetadata("inputs").plugin_data
    assert plugin.plugin_name == image_metadata.PLUGIN_NAME
    image_metadata.parse_plugin_metadata(plugin.content)


def check_hparams(root):
    """The table HParams as TensorBoard's backend makes it for a folder of runs."""
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import backend_context, metadata

    runs = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(root)
    runs.Reload()
    provider = data_provider.MultiplexerDataProvider(runs, root)
    backend = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    request = RequestContext()
    contents = backend.hparams_metadata(request, "")
    content = contents["summaries"][metadata.SESSION_START_INFO_TAG]
    start = metadata.parse_session_start_info_plugin_data(content)
    assert start.hparams["learningRate"].number_value == 0.25, start
    assert start.hparams["optimizer"].string_value == "adam", start
    assert start.start_time_secs == 1700000000, start
    experiment = backend.experiment_from_metadata(request, "", True, contents, [])
    assert sorted(info.name for info in experiment.hparam_infos) == ["learningRate", "optimizer"], experiment
    metrics = {(info.name.group, info.name.tag) for info in experiment.metric_infos}
    assert metrics == {("train", "loss"), ("train", "learning/lr")}, metrics


def check_training(directory):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    with open(os.path.join(directory, "bpe.json"), encoding="utf-8") as file:
        model = json.load(file)["model"]
    with open(os.path.join(directory, "training.json"), encoding="utf-8") as file:
        training = json.load(file)
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=training["vocabSize"],
        min_frequency=2,
        special_tokens=training["specialTokens"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained.train_from_iterator(training["documents"], trainer)
    theirs = json.loads(trained.to_str())["model"]
    assert theirs["merges"] == model["merges"], "other merges"
    assert theirs["vocab"] == model["vocab"], "other ids"


def with_special_tokens_as_text(document):
    """Unigram finds special tokens among its pieces, also where they are to be text; ours never does: no text has these names."""
    from tokenizers import Tokenizer

    special = {token["content"]: f"\U0010ffff{token['id']}" for token in document["added_tokens"]}
    document["added_tokens"] = []
    document["model"]["vocab"] = [[special.get(piece, piece), score] for piece, score in document["model"]["vocab"]]
    return Tokenizer.from_str(json.dumps(document))


def check_tokenizer(root):
    from tokenizers import Tokenizer

    directory = os.path.join(root, "tokenizer")
    check_training(directory)
    for name in ("bpe", "unigram", "wordpiece"):
        path = os.path.join(directory, f"{name}.json")
        with open(os.path.join(directory, f"{name}.samples.json"), encoding="utf-8") as file:
            samples = json.load(file)
        reader, plain = Tokenizer.from_file(path), Tokenizer.from_file(path)
        plain.encode_special_tokens = True
        if name == "unigram":
            with open(path, encoding="utf-8") as file:
                plain = with_special_tokens_as_text(json.load(file))
        checked, newer = 0, 0
        for sample in samples:
            text = sample["text"]
            # The classes of characters that Python does not know yet differ between versions of Unicode.
            if any(unicodedata.category(character) == "Cn" for character in text):
                continue
            checked += 1
            for tokenizer, ids in ((reader, sample["ids"]), (plain, sample["idsAsText"])):
                got = tokenizer.encode(text, add_special_tokens=False).ids
                # Normalization and punctuation are those of Node's version of Unicode, and the Rust library's are older.
                if got != ids and name != "bpe":
                    assert any(unicodedata.ucd_3_2_0.category(each) == "Cn" for each in text), (name, text, got, ids)
                    newer += 1
                else:
                    assert got == ids, (name, text, got, ids)
            if name == "bpe":
                assert reader.decode(sample["ids"], skip_special_tokens=False) == text, text
        assert checked > len(samples) / 2 and newer < 0.02 * checked, (name, checked, newer)


def turned(image, by):
    """The hue turned by a share of the circle, by Python's own colorsys."""
    import numpy
    from PIL import Image

    if image.mode == "L":
        return image
    pixels = numpy.asarray(image).reshape(-1, 3) / 255
    colors = [colorsys.rgb_to_hsv(*pixel) for pixel in pixels]
    new = [colorsys.hsv_to_rgb((h + by) % 1, s, v) for h, s, v in colors]
    return Image.fromarray(numpy.rint(255 * numpy.array(new)).astype(numpy.uint8).reshape(numpy.asarray(image).shape))


def affine(image, coefficients):
    from PIL import Image

    fill = tuple([7] * len(image.getbands()))
    return image.transform(image.size, Image.Transform.AFFINE, coefficients, fillcolor=fill)


def check_images(root):
    import numpy
    from PIL import Image, ImageEnhance, ImageOps

    operations = {
        "brightness": lambda image, by: ImageEnhance.Brightness(image).enhance(by),
        "contrast": lambda image, by: ImageEnhance.Contrast(image).enhance(by),
        "saturation": lambda image, by: ImageEnhance.Color(image).enhance(by),
        "sharpness": lambda image, by: ImageEnhance.Sharpness(image).enhance(by),
        "hue": turned,
        "posterize": lambda image, by: ImageOps.posterize(image, by),
        "solarize": lambda image, by: ImageOps.solarize(image, by),
        "autoContrast": lambda image, by: ImageOps.autocontrast(image),
        "equalize": lambda image, by: ImageOps.equalize(image),
        "grey": lambda image, by: image.convert("L"),
        "shearX": lambda image, by: affine(image, (1, by, 0, 0, 1, 0)),
        "shearY": lambda image, by: affine(image, (1, 0, 0, by, 1, 0)),
        "rotate": lambda image, by: image.rotate(by, fillcolor=tuple([7] * len(image.getbands()))),
    }
    with open(os.path.join(root, "images.json")) as file:
        samples = json.load(file)
    assert {sample["name"] for sample in samples} == set(operations)
    for sample in samples:
        before, after = [
            numpy.array(image["data"], numpy.uint8).reshape(image["height"], image["width"], image["channels"])
            for image in (sample["before"], sample["after"])
        ]
        image = Image.fromarray(before if before.shape[2] == 3 else before[:, :, 0])
        expected = numpy.asarray(operations[sample["name"]](image, sample["by"])).reshape(after.shape)
        # Halves of a hue are rounded in two ways; Pillow turns in fixed point, so a few borders of pixels lie elsewhere.
        tolerance = 1 if sample["name"] == "hue" else 0
        allowed = after.size * 0.02 if sample["name"] == "rotate" else 0
        differing = int((abs(expected.astype(int) - after) > tolerance).sum())
        assert differing <= allowed, (sample["name"], sample["by"], before.shape, differing, after.size)


def check_sounds(root):
    import librosa
    import numpy

    with open(os.path.join(root, "sounds.json")) as file:
        samples = json.load(file)
    for sample in samples:
        fields = sample["fields"]
        energies = librosa.feature.melspectrogram(
            y=numpy.array(sample["sound"], numpy.float64),
            sr=fields["sampleRate"],
            n_fft=fields["fftSize"],
            win_length=fields["windowSize"],
            hop_length=fields["hopSize"],
            n_mels=fields["numMels"],
            fmin=fields["minFrequency"],
            fmax=fields["maxFrequency"],
            htk=fields["scale"] == "htk",
            norm="slaney" if fields["norm"] == "slaney" else None,
            pad_mode="constant",
        )
        expected = numpy.log(numpy.maximum(energies, fields["floor"])).T
        got = numpy.array(sample["features"]).reshape(expected.shape)
        assert abs(got - expected).max() < 1e-4, abs(got - expected).max()


def check_columns(root):
    """Files of columns that pyarrow writes, in every compression, against what our sources read of them."""
    import datetime
    import decimal
    import subprocess

    import pyarrow as pa
    import pyarrow.parquet

    count = 50
    start = datetime.datetime(2024, 1, 1)
    columns = {
        "i8": (pa.int8(), [None if i % 7 == 3 else i - 25 for i in range(count)]),
        "u32": (pa.uint32(), [i * 80_000_000 for i in range(count)]),
        "i64": (pa.int64(), [2**53 + i if i % 2 else -i for i in range(count)]),
        "u64": (pa.uint64(), [2**64 - 1 - i for i in range(count)]),
        "f16": (pa.float16(), [i / 4 for i in range(count)]),
        "f32": (pa.float32(), [i / 8 for i in range(count)]),
        "f64": (pa.float64(), [None if i == 4 else i / 3 for i in range(count)]),
        "flag": (pa.bool_(), [None if i == 9 else i % 3 == 0 for i in range(count)]),
        "text": (pa.string(), [None if i % 5 == 1 else f"ü😀{i}" * (i % 4) for i in range(count)]),
        "large": (pa.large_string(), [f"l{i}" for i in range(count)]),
        "words": (pa.dictionary(pa.int32(), pa.string()), ["abc"[i % 3] for i in range(count)]),
        "bytes": (pa.binary(), [bytes([i, 255, 0]) for i in range(count)]),
        "fixed": (pa.binary(3), [bytes([i, 255, 0]) for i in range(count)]),
        "list": (pa.list_(pa.int64()), [None if i % 6 == 2 else list(range(i % 5)) for i in range(count)]),
        "nested": (pa.list_(pa.list_(pa.int32())), [[[1, None], [], None] if i % 2 else [] for i in range(count)]),
        "pair": (pa.list_(pa.float32(), 2), [[i / 2, i] for i in range(count)]),
        "struct": (
            pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
            [None if i == 3 else {"a": i, "b": [{"c": str(i)}] * (i % 3)} for i in range(count)],
        ),
        "map": (pa.map_(pa.string(), pa.int32()), [[(f"k{j}", j) for j in range(i % 3)] for i in range(count)]),
        "millis": (pa.timestamp("ms"), [start + datetime.timedelta(milliseconds=i * 1500) for i in range(count)]),
        "micros": (pa.timestamp("us", tz="UTC"), [start + datetime.timedelta(microseconds=i) for i in range(count)]),
        "date": (pa.date32(), [datetime.date(1969, 12, 30) + datetime.timedelta(days=i) for i in range(count)]),
        "nanos": (pa.timestamp("ns"), [1_704_067_200_123_456_000 + 1000 * i for i in range(count)]),
        "fine": (pa.timestamp("ns"), [1_704_067_200_123_456_789 - i for i in range(count)]),
        "late": (pa.timestamp("us"), [2**55 + i for i in range(count)]),
        "clock_s": (pa.time32("s"), [datetime.time(23, 59, i) for i in range(count)]),
        "clock_ms": (pa.time32("ms"), [datetime.time(23, i, 59, 999_000) for i in range(count)]),
        "clock_us": (pa.time64("us"), [None if i == 5 else datetime.time(23, i, 59, 999_999) for i in range(count)]),
        "clock_ns": (pa.time64("ns"), [86_399_999_999_999 - i for i in range(count)]),
        "clocks": (pa.list_(pa.time64("us")), [[datetime.time(0, 0, 1, i), None] for i in range(count)]),
        "day": (pa.date64(), [datetime.date(1969, 12, 30) + datetime.timedelta(days=i) for i in range(count)]),
        "decimal": (pa.decimal128(20, 2), [decimal.Decimal("-12345678901.23") + i for i in range(count)]),
        "money": (pa.decimal128(5, 2), [decimal.Decimal("1.10") * (i - 9) for i in range(count)]),
        "long": (pa.decimal128(38, 20), [decimal.Decimal("-123456789012345678.12345678901234567891") + i for i in range(count)]),
        "wide": (pa.decimal256(76, 0), [decimal.Decimal(10**75 + i) for i in range(count)]),
        "third": (pa.decimal128(38, 20), [decimal.Decimal(i) / 8 for i in range(count)]),
        "owed": (
            pa.struct([("d", pa.decimal128(18, 3)), ("l", pa.list_(pa.decimal128(9, 1)))]),
            [{"d": decimal.Decimal("0.007") * i, "l": [decimal.Decimal("0.3"), None]} for i in range(count)],
        ),
        "nothing": (pa.null(), [None] * count),
    }
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    directory = os.path.join(root, "columns")
    os.makedirs(directory)
    paths = []

    def path_of(name):
        paths.append(os.path.join(directory, name))
        return paths[-1]

    for codec in ["none", "snappy", "gzip", "zstd", "brotli", "lz4"]:
        pa.parquet.write_table(table, path_of(f"{codec}.parquet"), compression=codec, row_group_size=20)
    pa.parquet.write_table(
        table, path_of("plain.parquet"), use_dictionary=False, data_page_version="2.0", row_group_size=7
    )
    pa.parquet.write_table(table, path_of("old.parquet"), version="1.0", use_deprecated_int96_timestamps=True)
    for name, new_file, codec in [
        ("stream.arrow", pa.ipc.new_stream, None),
        ("file.arrow", pa.ipc.new_file, None),
        ("zstd.arrow", pa.ipc.new_file, "zstd"),
    ]:
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.OSFile(path_of(name), "wb") as file, new_file(file, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=20)

    def plain(value):
        if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**53 else {"integer": str(value)}
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, decimal.Decimal):
            digits = f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"
            if "." not in digits:
                return plain(int(digits))
            number = float(digits)
            return number if f"{number:.{len(digits.partition('.')[2])}f}" == digits else digits
        if isinstance(value, datetime.time):
            return plain(datetime.datetime.combine(datetime.date(1970, 1, 1), value))
        if isinstance(value, datetime.datetime):
            return (value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)) / datetime.timedelta(milliseconds=1)
        if isinstance(value, datetime.date):
            return (value - datetime.date(1970, 1, 1)).days * 86_400_000
        if isinstance(value, dict):
            return {name: plain(inner) for name, inner in value.items()}
        return [plain(inner) for inner in value]

    # Python's own times have microseconds, and four digits for the year.
    scales = {"nanos": 6, "fine": 6, "late": 3, "clock_ns": 6}
    expected = [plain(row) for row in table.drop_columns(list(scales)).to_pylist(maps_as_pydicts="strict")]
    with decimal.localcontext(prec=40):
        for name, scale in scales.items():
            for row, number in zip(expected, table[name].cast(pa.int64()).to_pylist(), strict=True):
                row[name] = plain(decimal.Decimal(number).scaleb(-scale))
    command = ["node", "--import", "tsx", "test/readers/readFiles.ts", *paths]
    read = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for path, rows in zip(paths, read, strict=True):
        assert len(rows) == count, (path, len(rows))
        for got, wanted in zip(rows, expected, strict=True):
            differing = {name: (got[name], wanted[name]) for name in wanted if got[name] != wanted[name]}
            assert got.keys() == wanted.keys() and not differing, (path, differing)


def check_tfrecords(root):
    """Examples that protobuf serializes and TensorBoard frames, plain and compressed, against what our source reads."""
    import gzip
    import random
    import subprocess

    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from tensorboard.summary.writer.record_writer import RecordWriter

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")

    def message(name, *fields):
        described = file.message_type.add(name=name)
        for number, (field_name, kind, label, type_name) in enumerate(fields, 1):
            described.field.add(name=field_name, number=number, type=kind, label=label, type_name=type_name)
        return described

    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    message("BytesList", ("value", field.TYPE_BYTES, many, None))
    message("FloatList", ("value", field.TYPE_FLOAT, many, None))
    message("Int64List", ("value", field.TYPE_INT64, many, None))
    lists = [("bytes_list", ".t.BytesList"), ("float_list", ".t.FloatList"), ("int64_list", ".t.Int64List")]
    message("Feature", *((name, field.TYPE_MESSAGE, one, kind) for name, kind in lists))
    features = message("Features", ("feature", field.TYPE_MESSAGE, many, ".t.Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=one)
    entry.field.add(name="value", number=2, type=field.TYPE_MESSAGE, label=one, type_name=".t.Feature")
    message("Example", ("features", field.TYPE_MESSAGE, one, ".t.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    Example = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))

    draw = random.Random(5)
    path = os.path.join(root, "a.tfrecord")
    expected = []
    with open(path, "wb") as target:
        writer = RecordWriter(target)
        for i in range(300):
            ids = [draw.randint(-(2 ** draw.randint(0, 63)), 2 ** draw.randint(0, 63) - 1) for _ in range(i % 5)]
            row = {
                "text": f"ü😀{i}" * (i % 3),
                "image": [draw.randbytes(draw.randint(0, 900)) for _ in range(i % 4)],
                "weights": [i / 8, -i / 2],
                "ids": ids,
            }
            example = Example()
            example.features.feature["text"].bytes_list.value.append(row["text"].encode())
            example.features.feature["image"].bytes_list.value.extend(row["image"])
            example.features.feature["weights"].float_list.value.extend(row["weights"])
            example.features.feature["ids"].int64_list.value.extend(ids)
            writer.write(example.SerializeToString())
            expected.append(
                {
                    **row,
                    "image": [{"bytes": image.hex()} for image in row["image"]],
                    "ids": [n if abs(n) < 2**53 else {"integer": str(n)} for n in ids],
                }
            )
    with gzip.open(f"{path}.gz", "wb") as packed, open(path, "rb") as plain:
        packed.write(plain.read())
    command = ["node", "--import", "tsx", "test/readers/readFiles.ts", path, f"{path}.gz"]
    tables = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert tables == [expected, expected]


def check_onnx(root):
    """Files of functions and models: checked by onnx, run by ONNX Runtime at two sizes, against our own engine."""
    import numpy
    import onnx
    import onnxruntime

    paths = sorted(glob.glob(os.path.join(root, "onnx", "*.onnx")))
    assert len(paths) == 5, paths
    for path in paths:
        with open(path[: -len("onnx")] + "json", encoding="utf-8") as file:
            sample = json.load(file)
        onnx.checker.check_model(path, full_check=True)
        model = onnx.load(path)
        assert {each.domain for each in model.opset_import} == {""}, model.opset_import
        # Strict inference fails where a declared shape is not that of the operators.
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        in_names, out_names = sample.get("inputNames", {}), sample.get("outputNames", {})
        dims = {
            each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
            for each in inferred.graph.input
        }
        assert dims == {in_names.get(name, name): shape for name, shape in sample["dims"].items()}, dims
        assert model.producer_name == sample.get("producer", {"name": "luthier"})["name"]
        assert model.producer_version == sample.get("producer", {}).get("version", "")
        assert model.doc_string == sample.get("description", "")
        assert model.graph.name == sample.get("name", "program")
        assert {each.key: each.value for each in model.metadata_props} == sample.get("metadata", {})
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

        def array(given):
            return numpy.array(given["data"], dtype=given["dtype"]).reshape(given["shape"])

        for run in sample["runs"]:
            feeds = {in_names.get(name, name): array(given) for name, given in run["inputs"].items()}
            found = session.run([out_names.get(name, name) for name in run["outputs"]], feeds)
            for (name, expected), got in zip(run["outputs"].items(), found, strict=True):
                assert got.dtype == array(expected).dtype and got.shape == array(expected).shape, (path, name, got)
                assert numpy.allclose(got, array(expected), rtol=1e-5, atol=1e-6), (path, name, got, expected)


checks = {
    "safetensors": check_checkpoint,
    "TensorBoard": check_events,
    "TensorBoard's HParams": check_hparams,
    "tokenizers": check_tokenizer,
    "Pillow": check_images,
    "librosa": check_sounds,
    "pyarrow": check_columns,
    "TFRecord": check_tfrecords,
    "ONNX": check_onnx,
}
for name, check in checks.items():
    try:
        check(sys.argv[1])
        print(f"{name}: agrees")
    except ImportError as missing:
        print(f"{name}: skipped: {missing}")
