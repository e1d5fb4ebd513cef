"""The stand-in for a vLLM server that generates, too: random digits in the place of a model's words.

``model=none`` serves no model; ``answers=none`` gives no answers; ``routes=none`` has no profiler; ``token=TOKEN`` asks
for it everywhere.
"""

from __future__ import annotations

import json
import random
from typing import Any

import engine_stand_in


class Handler(engine_stand_in.Handler):
    """The routes of OpenAI's interface beside those of the profiler."""

    def do_GET(self) -> None:
        """Name the model; of the profiler's routes, say that they exist or that they do not."""
        options = self.stand.options
        if self.path == "/v1/models" and self._admitted():
            models = [] if options.get("model") == "none" else [{"id": "digits", "object": "model"}]
            self.answer(200, {"object": "list", "data": models})
        elif self.path in ("/start_profile", "/stop_profile"):
            status = 404 if options.get("routes") == "none" else 405
            self.answer(status, {"detail": "Not Found" if status == 404 else "Method Not Allowed"})
        elif self.path != "/v1/models":
            super().do_GET()

    def do_POST(self) -> None:
        """Answer each prompt ``n`` times."""
        if self.path != "/v1/completions":
            super().do_POST()
            return
        request: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._admitted():
            return
        self.stand.told.append(["generate", request, self.headers.get("Authorization")])
        self.stand.generate(request["max_tokens"])
        digits = random.Random(request["seed"])
        count = 0 if self.stand.options.get("answers") == "none" else len(request["prompt"]) * request["n"]
        texts = [" ".join(str(digits.randint(0, 9)) for _ in range(digits.randint(0, 12))) for _ in range(count)]
        self.answer(200, {"choices": [{"index": index, "text": text} for index, text in enumerate(texts)]})

    def _admitted(self) -> bool:
        wanted = self.stand.options.get("token")
        if wanted and self.headers.get("Authorization") != f"Bearer {wanted}":
            self.answer(401, {"error": "Unauthorized"})
            return False
        return True


if __name__ == "__main__":
    engine_stand_in.Handler = Handler  # type: ignore[misc]  # what its main serves with
    engine_stand_in.main()
