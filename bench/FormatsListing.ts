/** Lists entry logs as a picker of sessions does, beside the system calls alone; part of `FormatsChild.ts`. */
import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { listAll } from "../packages/formats/src/discovery/Discovery.ts"
import * as FileSessionStorage from "../packages/formats/src/storage/FileSessionStorage.ts"

const times = 40

const bare = (sessions: string): number => {
  const buffer = Buffer.allocUnsafe(4096)
  let sizeBytes = 0
  for (const folder of readdirSync(sessions)) {
    for (const name of readdirSync(join(sessions, folder))) {
      const file = openSync(join(sessions, folder, name), "r")
      sizeBytes += fstatSync(file).size
      readSync(file, buffer, 0, buffer.length, 0)
      closeSync(file)
    }
  }
  return sizeBytes
}

const timed = (work: () => unknown): number => {
  const began = performance.now()
  work()
  return performance.now() - began
}

/** Milliseconds of the first list of this process, of each later one, and of the system calls beside it. */
export const measure = (sessions: string) => {
  const list = () =>
    Effect.runSync(Effect.provide(listAll({ sessions, home: "/", temp: "/" }), FileSessionStorage.layer)).length
  let logs = 0
  const first = timed(() => (logs = list()))
  const rounds = Array.from({ length: times }, () => ({ list: timed(list), bare: timed(() => bare(sessions)) }))
  return { logs, first, rounds }
}
