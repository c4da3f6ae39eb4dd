/** Reads, asks for and shows the person's trust decision about a command's project. Spec: CL-160..CL-165. */
import { homedir } from "node:os"
import { join } from "node:path"
import { Context, Effect } from "effect"
import { isTrusted } from "@daybook/core/trust/ProjectTrust"
import * as TrustStore from "@daybook/core/trust/TrustStore"
import * as Configuration from "../config/Configuration.ts"
import { columns, oneLine } from "../render/Plain.ts"
import { dataFolder } from "../support/Paths.ts"
import { Output } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"

type Thing = TrustStore.Report["brings"][number]

/** The most things listed, changed files shown, and lines shown of each. */
const [mostListed, mostShown, mostLines] = [40, 10, 20]

const kinds: Readonly<Record<Thing["kind"], string>> = {
  instructions: "instructions to the model",
  agent: "an agent",
  template: "a template of prompts",
  skill: "part of a skill",
  other: "a file of .daybook",
  link: "a link to",
  clone: "it is a clone of"
}

const about = ({ kind, text }: Thing): string =>
  kind === "clone" || kind === "link" ? `${kinds[kind]} ${oneLine(text ?? "somewhere", 200)}` : kinds[kind]

const listed = (things: ReadonlyArray<Thing>, sign = " "): string => {
  const rows = columns(
    things.slice(0, mostListed).map((thing) => [`${sign} ${oneLine(thing.path, 100)}`, about(thing)])
  )
  const more = things.length - mostListed
  return more > 0 ? `${rows}${sign} and ${more} more\n` : rows
}

const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`

/** What a project brings, in a few words: the names of its instructions, and how many of each other kind. */
const inShort = (brings: ReadonlyArray<Thing>): string => {
  const of = (wanted: Thing["kind"]) => brings.filter(({ kind }) => kind === wanted)
  const instructions = of("instructions").map(({ path }) => oneLine(path, 60))
  const counts = (
    [
      ["agent", "agent"],
      ["template", "template"],
      ["skill", "file of skill"],
      ["other", "other file"],
      ["link", "link"]
    ] as const
  )
    .map(([kind, one]) => [of(kind).length, one] as const)
    .filter(([count]) => count > 0)
    .map(([count, one]) => counted(count, one).replace("file of skills", "files of skills"))
  const more = instructions.length > 3 ? [`${instructions.length - 3} more instructions`] : []
  const parts = [...instructions.slice(0, 3), ...more, ...counts]
  return [parts.slice(0, -1).join(", "), parts.at(-1) ?? "nothing"].filter((part) => part !== "").join(" and ")
}

/** Says that what the project brings has no effect, and the way on (CL-161). */
const ignoredText = ({ brings, changes, standing }: TrustStore.Report): string => {
  const named = `this project's ${inShort(brings.filter(({ kind }) => kind !== "clone"))}`
  const are = brings.filter(({ kind }) => kind !== "clone").length === 1 ? "is" : "are"
  const why = standing.state === "unknown" && changes === undefined ? "" : `; ${standing.why}`
  return `${named} ${are} ignored until you trust it${why}: daybook trust grant (daybook trust shows it)\n`
}

/** The trust question: the name of the project and the list of its files that would take effect. */
export const questionText = ({ brings, changes, root }: TrustStore.Report): string => {
  const whose = oneLine(root, 400)
  const begin =
    changes === undefined
      ? `\nThis project is not known yet: ${whose}\nIt brings:\n${listed(brings)}`
      : `\nThis project has changed since your decision: ${whose}\n`
  return brings.length === 0 ? `\nOthers may write to this folder: ${whose}\n` : begin
}

const lines = (sign: string, text: ReadonlyArray<string>): string => {
  const shown = text.slice(0, mostLines).map((line) => `    ${sign} ${oneLine(line, 200)}\n`)
  return `${shown.join("")}${text.length > mostLines ? `    ${sign} and ${text.length - mostLines} lines more\n` : ""}`
}

/** The lines between the common beginning and the common end. */
const difference = (before: string, now: string): string => {
  const [old, fresh] = [before.split("\n"), now.split("\n")]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < Math.min(old.length, fresh.length) - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  return `    from line ${start + 1}\n${lines("-", old.slice(start, old.length - end))}${lines("+", fresh.slice(start, fresh.length - end))}`
}

/** The differences since the decision, with changed lines, and the consequences of the answer. */
export const changesText = ({ changes, root }: TrustStore.Report): string => {
  const what =
    `If you trust it, the model reads its texts, and your rules that allow commands and changes apply here; otherwise not.\n` +
    `daybook trust changes the decision. If you do not know the project, look into ${oneLine(root, 400)} first.\n`
  if (changes === undefined) return what
  const changed = changes.changed.map(({ before, now }, index) => {
    const diff =
      before.text === undefined || now.text === undefined || index >= mostShown ? "" : difference(before.text, now.text)
    return `~ ${oneLine(now.path, 100)}\n${diff}`
  })
  const added = changes.added.map(
    (thing, index) =>
      `${listed([thing], "+")}${thing.text === undefined || index >= mostShown ? "" : lines("+", thing.text.split("\n"))}`
  )
  const different = [...added, ...changed]
  const left = different.length - mostListed
  const shown = different.slice(0, mostListed).join("")
  return `${listed(changes.removed, "-")}${shown}${left > 0 ? `and ${left} more\n` : ""}${what}`
}

/** The output of `daybook trust status`: whether the project is trusted, and its files that would take effect. */
export const statusText = (report: TrustStore.Report): string => {
  const { brings, root, standing } = report
  const head = `${standing.state}: ${oneLine(root, 400)}: ${standing.why}\n`
  if (brings.length > 0) return `${head}it brings:\n${listed(brings)}`
  // A project that is trusted without a decision is trusted because it brings nothing, and its reason says so.
  return isTrusted(standing) && !standing.decided ? head : `${head}it brings nothing\n`
}

/** Whether the command was given `--trust`. */
export class Everything extends Context.Reference<Everything>()("@daybook/cli/TrustEverything", {
  defaultValue: (): boolean => false
}) {}

/** The store of decisions, with the folders that the configuration trusts and `--trust`. */
export const storeOf = ({ trust }: Pick<Configuration.Configured, "trust">) =>
  Effect.map(Everything, (everything) =>
    TrustStore.make({
      folder: join(dataFolder(process.env, homedir()), "trust"),
      folders: trust?.folders,
      everything
    })
  )

export const store = Effect.flatMap(Configuration.load, storeOf)

/** Projects that this process has asked about or noted. */
const settled = new Set<string>()

/** Asks once about a folder's unknown project. Without a terminal, a note says that its files have no effect. */
export const settle = Effect.fn("Trusting.settle")(function* (directory: string) {
  const decisions = yield* store
  const report = yield* decisions.report(directory)
  const { root, standing } = report
  if (standing.state === "trusted" || settled.has(root)) return
  settled.add(root)
  const output = yield* Output
  if (standing.state === "unknown" && Question.canAsk()) {
    const shown = `${questionText(report)}${changesText(report)}`
    const answer = yield* Question.together(Question.line({ shown, prompt: "[t]rust it, or [n]ot now: " }))
    if (answer !== undefined) {
      const trusts = ["t", "trust"].includes(answer.trim().toLowerCase())
      return yield* decisions.decide(report, trusts ? "trusted" : "restricted")
    }
  }
  // A clone without texts needs no note: the refusal of a command says why.
  if (report.brings.every(({ kind }) => kind === "clone")) return
  yield* output.note(ignoredText(report))
})
