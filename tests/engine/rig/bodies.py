"""Holds request bodies against SGLang's own request models."""

import json
import subprocess
from dataclasses import dataclass

from rig.install import ENGINE_VERSION, HERE, MODEL_VERSIONS, bodies_home, interpreter


@dataclass(frozen=True)
class Judgement:
    """What SGLang's route makes of a body.

    Attributes:
        refused: why it is a 400; None where it is not.
        unknown: the keys that the model does not declare, and so ignores, dotted.
    """

    refused: str | None
    unknown: tuple[str, ...] = ()


class BodyJudge:
    """A process that has the request models of every version loaded."""

    def __init__(self):
        home = bodies_home()
        command = [interpreter(home), str(HERE / "body_models.py"), str(home), *MODEL_VERSIONS]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def judge(self, path, body, version=ENGINE_VERSION):
        """Judges the body (bytes) of a request for this path."""
        asked = {"version": version, "path": path, "body": body.decode("utf-8", "surrogatepass")}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        verdict = json.loads(self._process.stdout.readline())
        return Judgement(verdict["refused"], tuple(verdict.get("unknown", ())))

    def close(self):
        """Ends it."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
