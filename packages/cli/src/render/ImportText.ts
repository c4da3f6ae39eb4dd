/** Renders what an import did. Pure. Spec: CL-223 to CL-226. */
import type { ImportReport } from "@daybook/formats/import/Import"
import { many, sizeText } from "../support/Amounts.ts"
import { oneLine } from "./Plain.ts"

const verbs: Readonly<Record<ImportReport["status"], string>> = {
  imported: "imported",
  continued: "continued",
  grown: "added",
  unchanged: "unchanged"
}

const count = (number: number): string => number.toLocaleString("en-GB")

const moneyText = (cost: number): string => (cost === 0 ? "" : `, $${cost.toFixed(cost < 0.1 ? 4 : 2)}`)

/** One line for a log, then one for each problem. */
export const reportText = (path: string, report: ImportReport, dryRun: boolean): string => {
  const { added, answers, first, hidden, others, problems, prompts, records, results, sessionID, title, usage } = report
  const met = Object.values(problems).reduce((total, each) => total + each, 0)
  const parts = [
    many(prompts, "prompt"),
    many(answers, "answer"),
    many(results, "result"),
    ...(others === 0 ? [] : [`${others} other`]),
    ...(hidden === 0 ? [] : [`${hidden} not shown to the model`])
  ].join(", ")
  const did = dryRun ? "would be" : verbs[report.status]
  const what = report.status === "grown" || report.status === "continued" ? `${added} of ${records}` : `${records}`
  const named = title === undefined ? "" : ` "${oneLine(title, 60)}"`
  const read = count(usage.input + usage.cacheRead + usage.cacheWrite)
  const tokens = `${read} tokens in, ${count(usage.output)} out${moneyText(usage.cost)}`
  const lines = [
    `${oneLine(path, 400)}`,
    `  ${did} ${sessionID}${named} from ${report.dialect}: ${what} records (${parts}); ${tokens}`,
    ...first.map(
      ({ details, kind, place }) => `  line ${place.line}, byte ${place.offset}: ${kind}: ${oneLine(details, 400)}`
    ),
    ...(met > first.length ? [`  ${many(met - first.length, "more problem")}`] : [])
  ]
  return `${lines.join("\n")}\n`
}

/** The logs that a tool keeps. */
export const folderText = (tool: string, folder: string, files: number, bytes: number): string =>
  `${tool.padEnd(14)} ${many(files, "log").padStart(10)}  ${sizeText(bytes).padStart(8)}  ${oneLine(folder, 400)}\n`

const width = 24

/** A bar that shows how much is done. */
export const barText = (done: number, total: number, path: string): string => {
  const part = total === 0 ? 1 : Math.min(1, done / total)
  const full = Math.round(part * width)
  const bar = `${"#".repeat(full)}${".".repeat(width - full)}`
  return `[${bar}] ${String(Math.floor(part * 100)).padStart(3)} % of ${sizeText(total)}  ${oneLine(path, 60)}`
}
