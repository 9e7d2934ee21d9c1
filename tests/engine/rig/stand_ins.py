"""Stands in for packages that need a GPU or that nothing here uses, so that SGLang can be imported.

Only what is not installed is stood in for, and nothing of SGLang itself. A stand-in gives away
whatever is asked of it: a class for a capitalised name, another stand-in for any other; called,
it is a decorator that changes nothing.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types

ABSENT = frozenset(
    [
        "IPython",
        "av",
        "blobfile",
        "cuda",
        "cutlass",
        "datasets",
        "decord",
        "decord2",
        "deep_ep",
        "deep_gemm",
        "deepseek_recipe",
        "flash_attn",
        "flash_mla",
        "flashinfer",
        "humming",
        "kernels",
        "librosa",
        "mistral_common",
        "modelscope",
        "numba",
        "nvidia_cutlass_dsl",
        "nvshmem",
        "outlines",
        "py_spy",
        "pynvml",
        "quack",
        "sgl_kernel",
        "smg_grpc_proto",
        "smg_grpc_servicer",
        "soxr",
        "tilelang",
        "timm",
        "tml_renderers",
        "torch_memory_saver",
        "torchaudio",
        "torchcodec",
        "torchvision",
    ]
)


def _is_special(name):
    return name.startswith("__") and name.endswith("__")


class _Anything(type):
    """The class of stand-in classes: any attribute is 0, so that it can be compared and added."""

    def __getattr__(cls, name):
        if _is_special(name):
            raise AttributeError(name)
        return 0


class _Base(metaclass=_Anything):
    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__()


class _StandIn(types.ModuleType):
    __file__ = __file__
    __version__ = "0.0.0"

    def __init__(self, name):
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name):
        if _is_special(name):
            raise AttributeError(name)
        whole = f"{self.__name__}.{name}"
        if name[0].isupper():
            found = _Anything(name, (_Base,), {"__module__": self.__name__})
        else:
            found = sys.modules.get(whole) or _StandIn(whole)
        setattr(self, name, found)
        return found

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]
        return lambda decorated: decorated

    def __mro_entries__(self, bases):
        return (_Base,)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last in the row: it is asked only for what nobody else has found."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in ABSENT:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return _StandIn(spec.name)

    def exec_module(self, module):
        pass


def install():
    """Prepares this process for the import of `sglang`; workers inherit it by re-import."""
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "1",
    }
    # transformers asks which packages exist, and remembers: it must not see a stand-in.
    from transformers.utils import import_utils

    for name in dir(import_utils):
        if name.startswith("is_") and name.endswith("_available"):
            with contextlib.suppress(Exception):
                getattr(import_utils, name)()
    sys.meta_path.append(_Finder())
