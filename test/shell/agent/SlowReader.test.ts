/** A live shell of `bash` whose output is taken slowly. */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Option, Stream } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { CommandRunner } from "../../../packages/tools/src/CommandRunner.ts"
import { makeLiveBench } from "../../tools/LiveBench.ts"
import { agentWith, allowAll, callBy } from "../../tools/Workbench.ts"

const megabytes = 48
const print = `head -c ${megabytes}M /dev/zero | tr '\\0' x`

it.scopedLive("SL-235: a command waits for the reader of its output, who then gets all of it", () =>
  Effect.gen(function* () {
    const bench = yield* makeLiveBench()
    const { live } = Context.get(bench.context, CommandRunner)
    if (live === undefined) return assert.fail("there are no live shells")
    const place = yield* live.enter(callBy(agentWith(allowAll), bench.folder))
    const request = (text: string) => ({
      text,
      cwd: bench.folder,
      elsewhere: false,
      home: bench.folder,
      env: { PATH: process.env["PATH"] ?? "" },
      confined: undefined,
      seconds: 60,
      changes: false
    })
    const slow = yield* place.start(request(`${print}; echo ended >ended`))
    const pull = yield* Stream.toPull(slow.output)
    const size = (chunks: Iterable<{ readonly bytes: Uint8Array }>) =>
      [...chunks].reduce((sum, { bytes }) => sum + bytes.length, 0)
    let read = size(yield* Effect.orDie(pull))
    // As much as another shell prints in the meantime, to a reader that takes it.
    const beside = yield* makeLiveBench()
    yield* beside.succeed("bash", { command: print })
    assert.isFalse(existsSync(join(bench.folder, "ended")))
    for (let more = yield* Effect.option(pull); Option.isSome(more); more = yield* Effect.option(pull)) {
      read += size(more.value)
    }
    assert.strictEqual(read, megabytes * 1_048_576)
    assert.strictEqual((yield* slow.exit).code, 0)
    assert.isTrue(existsSync(join(bench.folder, "ended")))
  })
)
