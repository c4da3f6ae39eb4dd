/** Renders the account of an undo. Pure. Spec: CL-276, CL-277 in specs/cli.md. */
import type { Undone, UndoneFile } from "@daybook/core/session/SessionOptions"
import { many } from "../support/Amounts.ts"
import { oneLine } from "./Plain.ts"

/** Files in the account that a person reads; --json has more. */
const shown = 200

const words: Readonly<Record<UndoneFile["action"], string>> = {
  restored: "restored",
  recreated: "recreated",
  deleted: "deleted",
  already: "unchanged",
  conflict: "left"
}

const fileLine = ({ action, path, reason }: UndoneFile): string =>
  `${words[action].padEnd(9)}  ${oneLine(path, 400)}${reason === undefined ? "" : `: ${oneLine(reason, 400)}`}\n`

/** A line for each file. */
export const fileLines = ({ files }: Undone): string => {
  const rest = files.length - shown
  return `${files.slice(0, shown).map(fileLine).join("")}${rest > 0 ? `and ${many(rest, "more file")}; --json lists them\n` : ""}`
}

/** What the files and the history became, for stderr. */
export const undoNote = (sessionID: string, { counts, leafID, omitted, problems, undone, files }: Undone): string => {
  const changed = counts.restored + counts.recreated + counts.deleted
  const place = leafID === undefined ? "the history is empty again" : `the history ends at ${leafID}`
  const left = counts.conflicts === 0 ? "" : `, ${many(counts.conflicts, "file")} left as they are`
  const lines = [
    ...problems.map((problem) => `files of some turns stay as they are: ${oneLine(problem, 400)}`),
    ...(omitted.length === 0
      ? []
      : [
          `the snapshots do not hold ${omitted
            .slice(0, 10)
            .map((name) => oneLine(name, 400))
            .join(", ")}`
        ]),
    ...(files.length === 0 ? ["no file was snapshotted with a change: only the history goes back"] : []),
    undone
      ? `took back the last prompt of ${sessionID}: ${many(changed, "file")} put back${left}; ${place}`
      : `dry run, nothing was changed. An undo in ${sessionID}: ${many(changed, "file")} put back${left}; ${place}`
  ]
  return lines.map((line) => `${line}\n`).join("")
}
