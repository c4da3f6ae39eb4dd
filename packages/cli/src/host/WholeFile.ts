/** Writes a file that appears when it is complete and on disk. Spec: CL-233. */
import { randomUUID } from "node:crypto"
import { link, open, rename, unlink } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Effect, Stream } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"
import { oneLine } from "../render/Plain.ts"
import { FileProblem } from "../support/Errors.ts"

const problem = (path: string) => (cause: unknown) => {
  const code = codeOf(cause, String(cause))
  const why = code === "EEXIST" ? "it exists; --force replaces it" : `it cannot be written (${code})`
  return new FileProblem({ message: `${oneLine(path, 400)}: ${why}` })
}

/** Writes the texts to the path. If anything fails, the path is as before. Only the user may read a new file. */
export const write = <E, R>(
  path: string,
  texts: Stream.Stream<string, E, R>,
  { force }: { readonly force: boolean }
): Effect.Effect<void, E | FileProblem, R> => {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}.part`)
  const attempt = <A>(work: () => Promise<A>) => Effect.tryPromise({ try: work, catch: problem(path) })
  const file = Effect.acquireRelease(
    attempt(() => open(temporary, "wx", 0o600)),
    (opened) => Effect.promise(() => opened.close().catch(() => undefined))
  )
  return Effect.scoped(
    Effect.gen(function* () {
      const opened = yield* file
      yield* Effect.addFinalizer(() => Effect.promise(() => unlink(temporary).catch(() => undefined)))
      yield* Stream.runForEachChunk(texts, (chunk) => attempt(() => opened.appendFile([...chunk].join(""))))
      yield* attempt(() => opened.sync())
      // A link does not replace a file that appeared in the meantime.
      yield* attempt(() => (force ? rename(temporary, path) : link(temporary, path)))
    })
  )
}
