"""Losses of DPO, GRPO and distillation by PyTorch in float64, with their gradients: recipes.json of test/fixtures.

    ~/.cache/luthier/peers/venv/bin/python scripts/record_recipes.py > test/fixtures/recipes.json
"""
import json

import torch
import torch.nn.functional as F

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)


def plain(**tensors):
    return {
        name: {"shape": list(x.shape), "data": [float(f"{v:.7g}") for v in x.detach().flatten().tolist()]}
        for name, x in tensors.items()
    }


def as_float32(x):
    return torch.tensor([float(f"{v:.7g}") for v in x.flatten().tolist()]).reshape(x.shape)


def dpo(beta=0.3):
    chosen, rejected, ref_chosen, ref_rejected = (as_float32(-8 * torch.rand(5)) for _ in range(4))
    chosen.requires_grad_()
    rejected.requires_grad_()
    margin = (chosen - rejected) - (ref_chosen - ref_rejected)
    loss = -F.logsigmoid(beta * margin).mean()
    loss.backward()
    return {
        "beta": beta,
        "inputs": plain(chosen=chosen, rejected=rejected, refChosen=ref_chosen, refRejected=ref_rejected),
        "loss": loss.item(),
        "accuracy": (margin > 0).double().mean().item(),
        "margin": (beta * margin).mean().item(),
        "gradients": plain(chosen=chosen.grad, rejected=rejected.grad),
    }


def grpo(beta=0.1, epsilon=0.2):
    policy = as_float32(-3 * torch.rand(4, 6))
    old = as_float32(policy + 0.3 * torch.randn(4, 6))
    reference = as_float32(policy + 0.5 * torch.randn(4, 6))
    advantages = as_float32(torch.randn(4))
    mask = torch.ones(4, 6)
    mask[0, 4:] = 0
    mask[2, 1:] = 0
    policy.requires_grad_()
    ratio = torch.exp(policy - old)
    a = advantages[:, None]
    surrogate = torch.min(ratio * a, ratio.clamp(1 - epsilon, 1 + epsilon) * a)
    log_ratio = reference - policy
    kl = torch.exp(log_ratio) - log_ratio - 1
    per_token = -surrogate + beta * kl
    loss = ((per_token * mask).sum(1) / mask.sum(1)).mean()
    loss.backward()
    return {
        "beta": beta,
        "epsilon": epsilon,
        "inputs": plain(
            policy=policy, oldLogProbs=old, reference=reference, advantages=advantages, weights=mask
        ),
        "loss": loss.item(),
        "kl": ((kl * mask).sum(1) / mask.sum(1)).mean().item(),
        "gradients": plain(policy=policy.grad),
    }


def distillation(temperature=2.5, alpha=0.7):
    student, teacher = (as_float32(2 * torch.randn(3, 4, 7)) for _ in range(2))
    labels = torch.randint(7, (3, 4))
    weights = as_float32(torch.rand(3, 4))
    weights[1, 2:] = 0
    student.requires_grad_()
    soft = F.kl_div(
        F.log_softmax(student / temperature, -1),
        F.log_softmax(teacher / temperature, -1),
        reduction="none",
        log_target=True,
    ).sum(-1)
    hard = F.cross_entropy(student.transpose(1, 2), labels, reduction="none")
    total = weights.sum()
    distill = temperature**2 * (soft * weights).sum() / total
    xent = (hard * weights).sum() / total
    loss = alpha * distill + (1 - alpha) * xent
    loss.backward()
    return {
        "temperature": temperature,
        "alpha": alpha,
        "inputs": plain(student=student, teacher=teacher, labels=labels, weights=weights),
        "loss": loss.item(),
        "distillation": distill.item(),
        "gradients": plain(student=student.grad),
    }


print(
    json.dumps(
        {"torch": torch.__version__, "dpo": dpo(), "grpo": grpo(), "distillation": distillation()}, indent=1
    )
)
