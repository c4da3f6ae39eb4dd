/**
 * Method: root may write everything, whatever a file's mode says. So the tools run in a process of its own that is really
 * another user, on a Location of its own, and tells what became of it.
 */
import { execFileSync } from "node:child_process"
import { chmodSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { build } from "esbuild"
import { temporaryFolder } from "./Workbench.ts"

const nobody = 65_534

const Report = Schema.parseJson(
  Schema.Struct({
    uid: Schema.Int,
    failures: Schema.Array(Schema.Struct({ type: Schema.String, message: Schema.String })),
    found: Schema.Struct({ kept: Schema.String, mode: Schema.Int, names: Schema.Array(Schema.String) })
  })
)

it.scopedLive("TO-52: without privileges, what may not be written is refused, and stays as it is", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    chmodSync(folder, 0o755)
    const outfile = join(folder, "unprivileged.mjs")
    // Whole, since another user may not see the packages here.
    yield* Effect.promise(() =>
      build({
        entryPoints: [join(import.meta.dirname, "unprivileged.ts")],
        outfile,
        bundle: true,
        platform: "node",
        format: "esm",
        conditions: ["@daybook/source"],
        external: ["sharp"],
        // The tools open no database.
        alias: { "better-sqlite3": "node:process" },
        banner: {
          js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"
        },
        logLevel: "error"
      })
    )
    const root = process.getuid?.() === 0
    const stdout = execFileSync(process.execPath, [outfile], {
      cwd: folder,
      env: { PATH: process.env["PATH"] },
      encoding: "utf8",
      ...(root ? { uid: nobody, gid: nobody } : {})
    })
    const { failures, found, uid } = yield* Schema.decodeUnknown(Report)(stdout)
    assert.notStrictEqual(uid, 0)
    assert.deepStrictEqual(
      failures.map(({ message, type }) => `${type} ${/\((E\w+)\)/.exec(message)?.[1]}`),
      failures.map(() => "file.access EACCES")
    )
    assert.lengthOf(failures, 10)
    assert.deepStrictEqual(found, { kept: "old\n", mode: 0o444, names: ["closed", "hidden", "kept"] })
  })
)
