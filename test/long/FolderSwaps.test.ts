/**
 * Files are written while another process swaps a folder on their way for a link to outside, again and again.
 * DAYBOOK_RUNS chooses how often.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { patchOf, treeOf } from "../tools/PatchTree.ts"
import { makeWorkbench } from "../tools/Workbench.ts"

/** Runs in a process of its own until it is killed. Says once that it has begun. */
const swapper = `
const { renameSync, rmSync, symlinkSync, unlinkSync } = require("node:fs")
const [folder, outside] = process.argv.slice(1)
const never = new Int32Array(new SharedArrayBuffer(4))
for (let n = 0; ; n++) {
  renameSync(folder, folder + ".aside")
  try {
    symlinkSync(outside, folder)
    unlinkSync(folder)
  } catch {
    // A tool made the folder that was missing for a moment.
    rmSync(folder, { recursive: true })
  }
  try {
    renameSync(folder + ".aside", folder)
  } catch {
    rmSync(folder, { recursive: true })
    renameSync(folder + ".aside", folder)
  }
  if (n === 0) process.stdout.write("begun")
  // Some calls get through between two swaps.
  Atomics.wait(never, 0, 0, n % 2 === 0 ? 0 : 20 * Math.random())
}`

const swapping = (folder: string, outside: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, ["-e", swapper, folder, outside], { stdio: ["ignore", "pipe", "inherit"] })
      const ended = once(child, "exit")
      await once(child.stdout, "data")
      return { child, ended }
    }),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.kill("SIGKILL")
        return ended
      })
  )

const calls = [
  ["write", { path: "sub/deep/w.txt", content: "new" }],
  ["edit", { path: "sub/deep/e.txt", oldText: "old", newText: "new" }],
  [
    "apply_patch",
    {
      patch: patchOf(
        "*** Add File: sub/deep/more/a.txt",
        "+new",
        "*** Update File: sub/deep/u.txt",
        "-old",
        "+new",
        "*** Update File: sub/deep/m.txt",
        "*** Move to: sub/deep/moved.txt",
        "*** Delete File: sub/deep/d.txt"
      )
    }
  ]
] as const

const fill = (folder: string) => {
  rmSync(join(folder, "deep"), { recursive: true, force: true })
  mkdirSync(join(folder, "deep"), { recursive: true })
  for (const name of ["w", "e", "u", "m", "d"]) writeFileSync(join(folder, "deep", `${name}.txt`), "old\n")
}

const runs = Number(process.env["DAYBOOK_RUNS"] ?? 1_000)

it.scopedLive.each(calls)("TO-90: %s never reaches outside while a folder is swapped for a link", ([tool, input]) =>
  Effect.gen(function* () {
    const bench = yield* makeWorkbench()
    const sub = join(bench.folder, "sub")
    mkdirSync(sub)
    fill(bench.outside)
    const before = treeOf(bench.outside)
    const ends = { Success: 0, Failure: 0 }
    for (let run = 0; run < runs; run++) {
      fill(sub)
      const settled = yield* Effect.scoped(Effect.zipRight(swapping(sub, bench.outside), bench.settle(tool, input)))
      ends[settled._tag]++
      assert.deepStrictEqual(treeOf(bench.outside), before, `run ${run}`)
      // Killed between two steps, the swapper leaves one of its three states.
      for (const name of readdirSync(bench.folder)) {
        if (name === "sub.aside" || name === "sub") rmSync(join(bench.folder, name), { recursive: true })
      }
      mkdirSync(sub)
    }
    assert.isAbove(ends.Success, 0)
    assert.isAbove(ends.Failure, 0)
  })
)
