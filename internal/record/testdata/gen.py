"""Writes kafka-python-*.batch: the records of TestInteroperatesWithKafka, built by another implementation.

    pip install kafka-python==3.0.12 lz4 zstandard && python gen.py
"""

from kafka.record.default_records import DefaultRecordBatchBuilder

RECORDS = [
    (b"user123", b"Hello EastGuard!", [("trace", b"abc"), ("null", None), ("empty", b"")], 1700000000000),
    (None, b"no key", [], 1700000000005),
    (b"", b"", [], 1699999999000),
    (b"tombstone", None, [], 1700000000300),
    (b"big", b"x" * 5000, [("\u00e9", b"\x00\xff")], 1700000000300),
]

for name, codec in (("none", 0), ("lz4", 3), ("zstd", 4)):
    batch = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0,
        producer_id=4711, producer_epoch=3, base_sequence=17, batch_size=1 << 20,
    )
    for offset, (key, value, headers, timestamp) in enumerate(RECORDS):
        batch.append(offset, timestamp, key, value, headers)
    with open(f"kafka-python-{name}.batch", "wb") as f:
        f.write(bytes(batch.build()))
