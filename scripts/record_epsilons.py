"""Records epsilons of opacus, for test/learners/privacy/renyiAccountant.test.ts.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python -m pip install --no-deps --target /tmp/opacus opacus opt_einsum
    PYTHONPATH=/tmp/opacus ~/.cache/luthier/peers/venv/bin/python scripts/record_epsilons.py

writes test/fixtures/learners/epsilons.json: [sampling probability, noise multiplier, steps, delta, epsilon], and divergences of
one step, [sampling probability, noise multiplier, order, divergence]. PyPI's dp-accounting 0.6.0 has the same for whole orders; at
others it adds up the terms of the alternating series by their sizes, which bounds the divergence from above.
"""
import json
from importlib.metadata import version
from pathlib import Path

from opacus.accountants.analysis import rdp

OUT = Path(__file__).resolve().parent.parent / "test/fixtures/learners/epsilons.json"
ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(11, 64)) + [128, 256, 512, 1024]

epsilons = []
for q in (1e-4, 256 / 60000, 0.1, 1.0):
    for sigma in (0.7, 1.1, 4.0):
        for steps in (1, 1000, 14063):
            for delta in (1e-5, 1e-8):
                divergences = rdp.compute_rdp(q=q, noise_multiplier=sigma, steps=steps, orders=ORDERS)
                epsilon, _ = rdp.get_privacy_spent(orders=ORDERS, rdp=divergences, delta=delta)
                if epsilon > 0.01:
                    epsilons.append([q, sigma, steps, delta, float(epsilon)])
divergences = [
    [q, sigma, order, float(rdp.compute_rdp(q=q, noise_multiplier=sigma, steps=1, orders=[order])[0])]
    for q in (1e-4, 0.01, 0.3)
    for sigma in (0.5, 1.0, 5.0)
    for order in (1.1, 2, 2.5, 7.3, 32, 256)
]
rows = lambda values: "[\n" + ",\n".join("    " + json.dumps(row) for row in values) + "\n  ]"
versions = json.dumps({"opacus": version("opacus")})
OUT.write_text(
    '{\n  "versions": %s,\n  "epsilons": %s,\n  "divergences": %s\n}\n' % (versions, rows(epsilons), rows(divergences))
)
