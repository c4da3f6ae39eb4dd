/**
 * Method: a server in a process of its own is killed with `kill -9` while a run is active and a prompt waits. Another server
 * on the same root takes over: in the log, on the socket and in the files the run has ended, and what waited is run.
 */
import { it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "vitest"
import { temporaryFolder } from "../support/Harness.ts"
import { program } from "../support/Program.ts"
import { says } from "../support/ScriptedModel.ts"
import { connect, deltasOf, openFor, runtimeOf, script, uid } from "./support/Served.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

/** The served child, once it is ready, and its end. */
const start = Effect.fnUntraced(function* (script: string, root: string) {
  const [ready, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const made = spawn(process.execPath, [script, root], { stdio: ["ignore", "pipe", "inherit"] })
      made.stdout.on("data", () => Deferred.unsafeDone(ready, Effect.void))
      made.on("exit", () => Deferred.unsafeDone(ended, Effect.void))
      return made
    }),
    (made) =>
      Effect.zipRight(
        Effect.sync(() => made.kill("SIGKILL")),
        Deferred.await(ended)
      )
  )
  yield* Deferred.await(ready)
  return Effect.zipRight(
    Effect.sync(() => child.kill("SIGKILL")),
    Deferred.await(ended)
  )
})

it.scopedLive("FL-10: a run whose server was killed ends as EHOSTDOWN, its files say so, and what waited is run", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const outfile = yield* program(join(here, "support", "child.ts"))
    const kill = yield* start(outfile, root)
    const client = yield* connect(join(root, "agent/build.sock"))
    yield* client.ask({ op: "send", id: "m1", input: "first" })
    yield* client.untilType("delta")
    yield* client.ask({ op: "send", id: "m2", input: "second" })
    // A refused repetition shows that the second is on disk.
    yield* client.ask({ op: "send", id: "m2", input: "other" })
    yield* client.untilType("error")
    // Nothing waits behind this one.
    yield* client.ask({ op: "send", id: "o1", session: "other", input: "third" })
    yield* client.until(({ id, type }) => id === "o1" && type === "start")
    yield* kill
    yield* client.ended

    const after = yield* openFor({ root })
    assert.deepStrictEqual(yield* runtimeOf(after, (sessions) => sessions.interrupted), [])
    yield* script(after, ({ answer }) => answer(says("two")))
    const other = yield* connect(after.path)
    yield* other.ask({ op: "send", id: "m2", input: "second" })
    assert.strictEqual(deltasOf(yield* other.untilType("done")), "two")
    yield* other.ask({ op: "send", id: "m1", input: "first" })
    const first = yield* other.untilType("done")
    assert.deepInclude(first.at(-2), { type: "error", id: "m1", code: "EHOSTDOWN" })
    assert.deepInclude(first.at(-1), { type: "done", id: "m1", status: "error" })
    // Nothing was asked of the model again for the run that died.
    assert.strictEqual(yield* script(after, ({ pending }) => pending), 1)

    const file = (name: string) => readFileSync(join(root, `home/${uid}/agent/build/session/default`, name), "utf8")
    const lines = (name: string) =>
      file(name)
        .trimEnd()
        .split("\n")
        .map((line): Readonly<Record<string, unknown>> => JSON.parse(line))
    assert.deepStrictEqual(
      lines("events.jsonl").flatMap(({ code, status, type }) =>
        type === "error" ? [code] : type === "done" ? [status] : []
      ),
      ["EHOSTDOWN", "error", "ok"]
    )
    assert.strictEqual(file("state"), "done\n")
    assert.strictEqual(file("latest.md"), "two\n")
    const { items } = yield* runtimeOf(after, (sessions) => sessions.list())
    assert.lengthOf(items, 2)
    yield* after.close
  })
)
