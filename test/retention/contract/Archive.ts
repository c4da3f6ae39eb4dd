/** Archives hold the removed events exactly, and put them back exactly or refuse. Spec: specs/log.md. */
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import { restore } from "../../../packages/log/src/retention/Retention.ts"
import { cases } from "../../support/Cases.ts"
import { type LogLayer, temporaryFolder } from "../../support/Database.ts"
import { contents, readAll, session } from "../../support/Logs.ts"
import { begun, fill, pruned, share } from "../../support/Pruning.ts"
import { turnLog } from "../../support/TurnLogs.ts"

const putBack = (path: string) => restore(path, { pace: atOnce })

export const archives = (layer: LogLayer) => {
  it.scoped("RT-20: an archive is readable by its owner alone, and named by session, incarnation and range", () =>
    Effect.gen(function* () {
      const [folder, id] = [join(yield* temporaryFolder, "new", "archive"), session("a")]
      yield* begun(id, 4)
      const { incarnation } = yield* (yield* EventLog).head(id)
      const { cut, path = "" } = yield* pruned(id, { to: 40 }, folder)
      assert.strictEqual(basename(path), `ses_a.${incarnation}.0-${cut.to}.jsonl.gz`)
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      const lines = gunzipSync(readFileSync(path)).toString().trimEnd().split("\n")
      assert.strictEqual(lines.length, cut.to + 1 + 2)
      assert.include(JSON.parse(lines[0] ?? ""), {
        archive: "daybook",
        version: 1,
        sessionID: id,
        from: -1,
        to: cut.to
      })
    }).pipe(Effect.provide(layer))
  )

  it.scoped("RT-25: an archive removes what dead processes left of earlier ones of its session, and nothing else", () =>
    Effect.gen(function* () {
      const [folder, id] = [yield* temporaryFolder, session()]
      yield* begun(id, 4)
      const { incarnation } = yield* (yield* EventLog).head(id)
      const { pid } = spawnSync(process.execPath, ["--version"])
      const others = [
        `${id}.${incarnation}.0-9.jsonl.gz.${process.pid}-00000000.part`,
        `ses_x.1.0-9.jsonl.gz.${pid}-00000000.part`
      ]
      for (const name of [...others, `${id}.${incarnation}.0-9.jsonl.gz.${pid}-00000000.part`]) {
        writeFileSync(join(folder, name), "left")
      }
      const { path = "" } = yield* pruned(id, {}, folder)
      assert.sameMembers(readdirSync(folder), [basename(path), ...others])
    }).pipe(Effect.provide(layer))
  )

  it.scoped.prop(
    "RT-24: archives put back in reverse order give the database as it was, row for row",
    [turnLog, share],
    ([appends, part]) =>
      Effect.gen(function* () {
        const [folder, id] = [yield* temporaryFolder, session()]
        yield* fill(id, appends)
        const all = yield* readAll(id)
        const before = yield* contents
        const first = yield* pruned(id, { to: Math.floor(part * all.length) }, folder)
        const between = yield* contents
        const second = yield* pruned(id, {}, folder)
        if (second.path !== undefined) {
          yield* putBack(second.path)
          assert.deepStrictEqual(yield* contents, between)
        }
        if (first.path !== undefined) yield* putBack(first.path)
        assert.deepStrictEqual(yield* contents, before)
        assert.deepStrictEqual(yield* readAll(id), all)
      }).pipe(Effect.provide(layer)),
    { fastCheck: { numRuns: cases(6) } }
  )

  it.scoped("RT-23: an archive that does not fit the session is refused with the reason, and changes nothing", () =>
    Effect.gen(function* () {
      const [folder, id, log] = [yield* temporaryFolder, session(), yield* EventLog]
      yield* begun(id, 6)
      const first = yield* pruned(id, { to: 30 }, folder)
      const second = yield* pruned(id, {}, folder)
      const [early = "", late = ""] = [first.path, second.path]
      const before = yield* contents
      const refused = (path: string) => Effect.map(Effect.flip(putBack(path)), ({ message }) => message)
      assert.include(yield* refused(early), `was pruned further, up to ${second.cut.to}`)
      assert.deepStrictEqual(yield* contents, before)
      yield* putBack(late)
      assert.include(yield* refused(late), "are in the log already")
      yield* log.remove(id)
      assert.include(yield* refused(early), "was removed")
      yield* begun(id, 1)
      assert.include(yield* refused(early), "was removed")
      assert.include(yield* refused(join(folder, "none")), "ENOENT")
    }).pipe(Effect.provide(layer))
  )

  it.scoped("RT-22: an archive that was cut off, changed or damaged is refused, and changes nothing", () =>
    Effect.gen(function* () {
      const [folder, id] = [yield* temporaryFolder, session()]
      yield* begun(id, 6)
      const { path = "" } = yield* pruned(id, {}, folder)
      const before = yield* contents
      const whole = readFileSync(path)
      const text = gunzipSync(whole).toString()
      const lines = text.split("\n")
      const damages: ReadonlyArray<readonly [name: string, bytes: Uint8Array]> = [
        ["cut off", whole.subarray(0, whole.length - 40)],
        ["a flipped bit", Uint8Array.from(whole, (byte, at) => (at === whole.length >> 1 ? byte ^ 1 : byte))],
        ["another answer", gzipSync(text.replace("answer 3 answer", "answer 4 answer"))],
        ["a missing line", gzipSync(lines.toSpliced(7, 1).join("\n"))],
        ["no end", gzipSync(lines.slice(0, -2).join("\n"))],
        ["a line after the end", gzipSync(`${text}${lines[3]}\n`)],
        ["no archive", gzipSync("hello\n")],
        ["nothing", new Uint8Array()]
      ]
      for (const [name, bytes] of damages) {
        writeFileSync(path, bytes)
        const error = yield* Effect.flip(putBack(path))
        assert.strictEqual(error._tag, "ArchiveUnusable", name)
        assert.deepStrictEqual(yield* contents, before, name)
      }
      writeFileSync(path, whole)
      yield* putBack(path)
      assert.strictEqual((yield* readAll(id)).length, lines.length - 3)
    }).pipe(Effect.provide(layer))
  )
}
