"""zero_folder.py: writes checkpoints of DeepSpeed ZeRO with PyTorch's torch.save().

The classes of DeepSpeed are stood in for by classes with the same modules, names and states. NumPy
cuts the tensors as deepspeed/runtime/zero does."""
import collections
import enum
import pathlib
import shutil
import sys

import numpy
import torch

from dcp_folder import Fields, stand_in

CONFIG, FRAGMENT = "deepspeed.runtime.zero.config", "deepspeed.utils.tensor_fragment"
SubparamShape = stand_in("deepspeed.checkpoint.universal_checkpoint", "SubparamShape")
LossScaler = stand_in("deepspeed.runtime.fp16.loss_scaler", "LossScaler")
FragmentAddress = stand_in(FRAGMENT, "fragment_address")
stand_in(CONFIG, "DeepSpeedZeroConfig", Fields)
ZeroStage = enum.IntEnum("ZeroStageEnum", {"disabled": 0, "optimizer_states": 1, "gradients": 2,
                                           "weights": 3}, module=CONFIG, qualname="ZeroStageEnum")
sys.modules[CONFIG].ZeroStageEnum = ZeroStage


def flat(tensor):
    return tensor.float().numpy().reshape(-1)


def padded(values, multiple):
    return numpy.concatenate([values, numpy.full(-len(values) % multiple, numpy.nan, values.dtype)])


def concatenated(parts):
    return numpy.concatenate(parts) if parts else numpy.zeros(0, numpy.float32)


class Checkpoint:
    """groups: a list of dictionaries of parameters, in the order of the optimizer's groups."""

    def __init__(self, path, stage, ranks, groups, buffers=None, frozen=None, ties=None):
        self.path, self.stage, self.ranks = pathlib.Path(path), stage, ranks
        self.groups, self.buffers = groups, buffers or {}
        self.frozen, self.ties = frozen or {}, ties or {}
        self.path.mkdir(parents=True, exist_ok=True)
        for old in self.path.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()

    # ---- what each rank has ----

    def flats_cut_whole(self, rank, keeps_padding):
        """ZeRO-1 and 2: a group is padded to twice the ranks, and cut into equal parts."""
        flats = []
        for group in self.groups:
            values = concatenated([flat(t) for t in group.values()])
            each = len(padded(values, 2 * self.ranks)) // self.ranks
            part = values[rank * each:(rank + 1) * each]
            flats.append(numpy.pad(part, (0, each - len(part))) if keeps_padding else part)
        return flats

    def cut_each(self, tensor, rank):
        """ZeRO-3: a parameter is padded to a multiple of the ranks, and cut into equal parts."""
        values = padded(tensor.float().numpy().reshape(-1), self.ranks)
        each = len(values) // self.ranks
        return torch.from_numpy(values[rank * each:(rank + 1) * each].copy()).to(tensor.dtype)

    def flats_cut_each(self, rank):
        return [concatenated([self.cut_each(t.float(), rank).numpy() for t in group.values()])
                for group in self.groups]

    # ---- files ----

    def states(self, rank=0):
        is_cut = self.stage == 3
        module = collections.OrderedDict(self.buffers)
        for group in [*self.groups, self.frozen]:
            for name, t in group.items():
                module[name] = torch.zeros(0, dtype=torch.float16) if is_cut else t.half()
        for name, of in self.ties.items():
            module[name] = module[of]
        shapes = [collections.OrderedDict((n, t.shape) for n, t in g.items()) for g in self.groups]
        frozen = {n: self.cut_each(t, rank) if is_cut else t for n, t in self.frozen.items()}
        return {"module": module, "buffer_names": list(self.buffers), "optimizer": None,
                "param_shapes": shapes,
                "frozen_param_shapes": {n: t.shape for n, t in self.frozen.items()} or None,
                "frozen_param_fragments": frozen or None, "shared_params": dict(self.ties),
                "lr_scheduler": None, "skipped_steps": 0, "global_steps": 500,
                "dp_world_size": self.ranks, "mp_world_size": 1, "ds_config": {"zero": self.stage},
                "ds_version": "0.18.2"}

    def optim(self, rank, keeps_padding=False):
        is_cut = self.stage == 3
        arrays = self.flats_cut_each(rank) if is_cut else self.flats_cut_whole(rank, keeps_padding)
        flats = [torch.from_numpy(a.copy()) for a in arrays]
        moments = {i: {"step": 500, "exp_avg": f * 2, "exp_avg_sq": f * f}
                   for i, f in enumerate(flats)}
        base = {"state": moments, "param_groups": [{"lr": 1e-4, "params": [0]}]}
        own = {"zero_stage": ZeroStage(self.stage), "loss_scaler": LossScaler(cur_scale=1.0),
               "dynamic_loss_scale": False, "overflow": False,
               "partition_count": self.ranks if is_cut else [self.ranks] * len(flats)}
        if is_cut:
            own.update(optimizer_state_dict=base, fp32_flat_groups=flats)
        else:
            slices = [collections.OrderedDict((n, FragmentAddress(numel=1, start=rank))
                                              for n in g) for g in self.groups]
            own.update(base_optimizer_state=base, single_partition_of_fp32_groups=flats,
                       group_paddings=[rank] * len(flats), param_slice_mappings=slices)
        return {"optimizer_state_dict": own, "ds_config": {"zero": self.stage},
                "ds_version": "0.18.2"}

    def name(self, rank, kind, prefix=""):
        is_whole = kind == "model" and self.stage < 3
        return "mp_rank_00_model_states.pt" if is_whole else (
            f"{prefix}zero_pp_rank_{rank}_mp_rank_00_{kind}_states.pt")

    def write(self, prefix="", edit=None, keeps_padding=False, **save):
        """edit: a function of the kind of file, the rank, and what will be saved."""
        for rank in range(self.ranks):
            files = [("optim", self.optim(rank, keeps_padding))]
            if self.stage == 3 or not rank:
                files.append(("model", self.states(rank)))
            for kind, value in files:
                if edit:
                    edit(kind, rank, value)
                own = prefix if kind == "optim" else ""
                torch.save(value, self.path / self.name(rank, kind, own), **save)
        return self.path

    def write_universal(self, edit=None):
        """Write what ds_to_universal.py makes: of ZeRO-3 flat tensors without keys."""
        for rank in range(self.ranks if self.stage == 3 else 1):
            states = self.states(rank)
            if edit:
                edit("model", rank, states)
            torch.save(states, self.path / self.name(rank, "model"))
        for group in self.groups:
            for i, (name, tensor) in enumerate(group.items()):
                folder = self.path / "zero" / name
                folder.mkdir(parents=True, exist_ok=True)
                more = [{"cat_dim": 0}, {"cat_dim": 1, "vocab_tensor": True}, {},
                        {"sub_param_shape": SubparamShape(patterns=["a.*"], shape=(3, -1),
                                                          partition_dim=0)}][i % 4]
                for state, value in (("fp32", tensor.float()), ("exp_avg", tensor * 2)):
                    value = value.flatten() if self.stage == 3 else {**more, "param": value}
                    if edit and state == "fp32":
                        value = edit(name, 0, value) or value
                    torch.save(value, folder / f"{state}.pt")
                torch.save(500, folder / "step.pt")
        torch.save({"param_groups": []}, self.path / "zero" / "optimizer_state.pt")
        return self.path

    def tensors(self):
        """The model."""
        found = {n: t.float() for g in self.groups for n, t in g.items()}
        found.update(self.frozen)
        found.update({n: found[of] for n, of in self.ties.items()})
        found.update(self.buffers)
        return found


def example(path, stage, ranks, **more):
    """Parameters that end within, at, and across the borders of parts."""
    g = torch.Generator().manual_seed(stage * 100 + ranks)
    groups = [collections.OrderedDict(
        (n, torch.randn(s, generator=g)) for n, s in
        [("embed.weight", (7, 5)), ("layer.weight", (3, 4, 2)), ("one", (1, )), ("scalar", ())]),
        collections.OrderedDict((n, torch.randn(s, generator=g)) for n, s in
                                [("layer.bias", (11, )), ("none", (0, 3)), ("norm", (4, ))])]
    return Checkpoint(path, stage, ranks, groups,
                      buffers={"layer.steps": torch.tensor(17), "layer.mean": torch.arange(6.0)},
                      frozen={"frozen.weight": torch.randn((5, 3), generator=g).half(),
                              "frozen.bias": torch.randn(2, generator=g).bfloat16()},
                      ties={"head.weight": "embed.weight", "frozen.other": "frozen.weight"}, **more)
