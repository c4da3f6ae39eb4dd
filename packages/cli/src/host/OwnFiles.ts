/** Names the files of the command itself, which a sandbox hides. Spec: SB-4. */
import { homedir } from "node:os"
import { Effect } from "effect"
import * as Configuration from "../config/Configuration.ts"
import { dataFolder } from "../support/Paths.ts"

/** `root` holds session files and sockets. */
export const ownFiles = (root: string) =>
  Effect.map(Configuration.places, ({ file }) => [file, root, dataFolder(process.env, homedir())])
