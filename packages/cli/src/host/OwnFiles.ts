/** Names the files of the command itself, which a sandbox hides. Spec: SB-4, SL-188 in specs/shell.md. */
import { mkdirSync } from "node:fs"
import { homedir } from "node:os"
import { Effect } from "effect"
import type { SandboxSettings } from "@daybook/core/child/Sandbox"
import * as Configuration from "../config/Configuration.ts"
import { dataFolder } from "../support/Paths.ts"
import * as ShellHostPlace from "./ShellHostPlace.ts"

/** A sandbox hides only what exists. Through the socket of a host that is started later, a command would leave the sandbox. */
const reserve = (folder: string) =>
  Effect.sync(() => {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
    } catch {
      // Then no host can listen there either.
    }
  })

/** `root` holds session files and sockets. */
export const ownFiles = (root: string, { mode }: Pick<SandboxSettings, "mode"> = {}) =>
  Effect.gen(function* () {
    const { file } = yield* Configuration.places
    const { folder } = yield* ShellHostPlace.place
    if (mode === "on") yield* reserve(folder)
    return [file, root, dataFolder(process.env, homedir()), folder]
  })
