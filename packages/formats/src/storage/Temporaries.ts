/**
 * Names the temporary files that replace others, and removes those that killed processes left. A name has the number of
 * its process, so that those of running processes stay. Spec: FM-420.
 */
import * as fs from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { codeOf } from "./StorageError.ts"

/** The temporary files that this process writes now. */
const own = new Set<string>()
let count = 0

const pattern = /^\..+\.(\d+)\.\d+\.tmp$/

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return codeOf(cause) !== "ESRCH"
  }
}

/** No file is written for so long, in milliseconds. */
const longest = 24 * 60 * 60 * 1000
const startedAt = Date.now() - process.uptime() * 1000

/** Whether the process that wrote the file has ended; its number may be that of another process now. */
const isLeft = (path: string, pid: number): boolean => {
  const writtenAt = fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs
  if (writtenAt === undefined || own.has(path)) return false
  if (pid === process.pid) return writtenAt < startedAt
  return !isRunning(pid) || writtenAt < Date.now() - longest
}

/** The value, or undefined if the system refuses it. */
const possibly = <A>(use: () => A): A | undefined => {
  try {
    return use()
  } catch {
    return undefined
  }
}

const namesIn = (folder: string): ReadonlyArray<string> => possibly(() => fs.readdirSync(folder)) ?? []

/** A new name beside the file; give it back with `release`. */
export const reserve = (path: string): string => {
  const name = join(dirname(resolve(path)), `.${basename(path)}.${process.pid}.${++count}.tmp`)
  fs.rmSync(name, { force: true })
  own.add(name)
  return name
}

/** Removes the file, if it is still there, and gives its name back. */
export const release = (name: string): void => {
  fs.rmSync(name, { force: true })
  own.delete(name)
}

/** Removes what killed processes left in the folder. What this user may not remove stays. */
export const sweep = (folder: string): void => {
  for (const name of namesIn(folder)) {
    const [, pid] = pattern.exec(name) ?? []
    const path = join(resolve(folder), name)
    if (pid !== undefined) possibly(() => (isLeft(path, Number(pid)) ? fs.rmSync(path, { force: true }) : undefined))
  }
}
