/** Renders what an export wrote and what it left out. Pure. Spec: CL-232, CL-234. */
import type { ExportReport } from "@daybook/formats/export/EntryExport"
import { many } from "../support/Amounts.ts"
import { oneLine } from "./Plain.ts"

const prefix = "session.next."

const shortName = (type: string): string => (type.startsWith(prefix) ? type.slice(prefix.length) : type)

/** The lines for stderr; empty if there is nothing to say. */
export const reportText = (
  file: string | undefined,
  report: ExportReport | undefined,
  secrets: Readonly<Record<string, number>> | undefined
): string => {
  const { dropped = {}, lines = 0, notes = [], records = 0 } = report ?? {}
  const left = Object.entries(dropped).map(([type, count]) => `${count} ${shortName(type)}`)
  const replaced = Object.values(secrets ?? {}).reduce((sum, count) => sum + count, 0)
  const all = [
    ...(file === undefined
      ? []
      : [report === undefined ? oneLine(file, 400) : `${oneLine(file, 400)}: ${many(lines, "line")}`]),
    ...(left.length === 0 ? [] : [`the format cannot hold these events: ${left.join(", ")}`]),
    ...(records === 0
      ? []
      : [`${many(records, "record")} of the imported log left out: only its own format holds them`]),
    ...(secrets === undefined ? [] : [`${many(replaced, "secret")} replaced`]),
    ...notes
  ]
  return all.map((line) => `${line}\n`).join("")
}
