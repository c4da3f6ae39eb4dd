/** Renders what the verbs of live shells print for people. Pure. Spec: SL-180..SL-192 in specs/shell.md. */
import type { Checkpoint, Restored } from "@daybook/shell/checkpoint/Checkpoints"
import type { ExecResult, Unrecorded } from "@daybook/shell/domain/ExecResult"
import type { ListedShell } from "@daybook/shell/Shells"
import { columns, dateTime, oneLine } from "./Plain.ts"

const seconds = (total: number): string =>
  total < 120 ? `${total} s` : total < 7_200 ? `${Math.floor(total / 60)} min` : `${Math.floor(total / 3_600)} h`

/** One row per shell: id, transport, folder, and whether it is busy or idle. */
export const shellTable = (shells: ReadonlyArray<ListedShell>): string =>
  columns(
    shells.map(({ busy, cwd, idle_secs: idle, session_id: id, transport }) => [
      id,
      transport,
      oneLine(cwd, 80),
      busy === 0 ? `idle ${seconds(idle)}` : `busy: ${busy} ${busy === 1 ? "command" : "commands"}`
    ])
  )

/** Says that something ran and is not in the record. */
export const unrecordedNote = (what: string, { not_recorded: why }: Unrecorded): string =>
  why === undefined ? "" : `${what}, and is not recorded: ${oneLine(why, 400)}\n`

/** What a person should know of a command besides its output: a line each. */
export const resultNotes = (id: string, result: ExecResult): string => {
  const {
    closed,
    duration_ms: ms,
    late_output: late,
    no_checkpoint: missing,
    output,
    sandbox,
    timed_out: timedOut
  } = result
  const lines = [
    ...(late === undefined ? [] : late.split("\n").map((line) => `~ ${line}`)),
    ...(missing === undefined ? [] : [`no checkpoint before the command: ${oneLine(missing, 400)}`]),
    ...(timedOut === true ? [`the command was stopped after ${seconds(Math.floor(ms / 1_000))}`] : []),
    ...(output === undefined ? [] : [`some output is left out here; all of it: daybook shell output ${output}`]),
    ...(closed === undefined || sandbox === undefined ? [] : [sandbox]),
    ...(closed === undefined ? [] : [`${id} is closed: ${closed}`])
  ]
  return [unrecordedNote("the command ran", result), ...lines.map((line) => `${line}\n`)].join("")
}

/** A checkpoint is a row: short id, time, who made it, and what for. */
export const checkpointTable = (checkpoints: ReadonlyArray<Checkpoint>): string =>
  columns(
    checkpoints.map(({ created, id, kind, label = "" }) => [
      id.slice(0, 12),
      dateTime(Date.parse(created)),
      kind,
      oneLine(label, 100)
    ])
  )

const files = (count: number): string => `${count} ${count === 1 ? "file" : "files"}`

/** The account of a restore. */
export const restoredText = (restored: Restored): string => {
  const { added, changed, deleted, files_changed: count } = restored
  const named = added.length + changed.length + deleted.length
  const list = (mark: string, paths: ReadonlyArray<string>) => paths.map((path) => `${mark} ${oneLine(path, 400)}\n`)
  return [
    `restored ${restored.restored_to.slice(0, 12)}: ${files(count)} changed\n`,
    ...list("+", added),
    ...list("~", changed),
    ...list("-", deleted),
    ...(named < count ? [`and ${files(count - named)} more\n`] : []),
    `the state before is checkpoint ${restored.safety_checkpoint.slice(0, 12)}\n`
  ].join("")
}
