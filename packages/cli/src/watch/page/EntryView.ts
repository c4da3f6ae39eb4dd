/** Shows one event of a shell. Spec: SL-225 in specs/shell.md. */
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import { blockText, durationText } from "@daybook/shell/record/WatchText"
import type { Entry } from "./Book.ts"
import { type Child, element, fill } from "./Dom.ts"
import { fold } from "./Folded.ts"
import { filesText, hiddenText, reasonText } from "./Words.ts"

type Executed = EventOfType<"session.next.shell.executed">["data"]

const time = (at: number): HTMLTimeElement => {
  const date = new Date(at)
  return element(
    "time",
    { datetime: date.toISOString(), title: date.toLocaleString() },
    date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })
  )
}

/** How long texts are shown. */
interface Showing {
  /** The names of those that are shown whole; a click adds and removes one. */
  readonly whole: Set<string>
  /** The text to find, which is shown also in a folded text. */
  readonly pattern: RegExp | undefined
}

/** A text whose middle is folded if it is long; a click shows the whole text, another one folds it again. */
const folding = (text: string, name: string, { pattern, whole }: Showing): ReadonlyArray<Child> => {
  const pieces = fold(text, pattern)
  if (pieces === undefined) return [text]
  const body = element("span", { class: "body" })
  const button = (words: string) => {
    const made = element("button", { type: "button", class: "fold", "aria-expanded": String(whole.has(name)) }, words)
    made.addEventListener("click", () => {
      if (!whole.delete(name)) whole.add(name)
      show()
      // The reader goes on where the hidden part was.
      body.querySelector("button")?.focus({ preventScroll: true })
    })
    return made
  }
  const show = () => {
    if (whole.has(name)) fill(body, text, button("Show less"))
    else fill(body, ...pieces.map((piece) => (typeof piece === "string" ? piece : button(hiddenText(piece)))))
  }
  show()
  return [body]
}

/** What a command printed; `label` says which stream it is. */
const output = (kind: "late" | "out" | "err", label: string, text: string | undefined, showing: Showing) =>
  text === undefined || text === ""
    ? undefined
    : element(
        "figure",
        { class: `output ${kind}`, "aria-label": label },
        kind === "out" ? undefined : element("figcaption", {}, label),
        element("pre", {}, ...folding(text, kind, showing))
      )

const promptLine = ({ folder }: Entry, command: string, showing: Showing, ...end: ReadonlyArray<Child>) =>
  element(
    "div",
    { class: "line" },
    element(
      "div",
      { class: "prompt" },
      folder === undefined ? undefined : element("bdi", { class: "folder" }, folder),
      element("span", { class: "sigil", "aria-hidden": "true" }, "$"),
      element("code", { class: "command" }, ...folding(command, "command", showing))
    ),
    element("div", { class: "end" }, ...end)
  )

const chip = (kind: string, text: string) => element("span", { class: `chip ${kind}` }, text)

const endChip = ({ exitCode, timedOut }: Executed) =>
  timedOut === true
    ? chip("bad", `timed out, exit ${exitCode}`)
    : chip(exitCode === 0 ? "good" : "bad", `exit ${exitCode}`)

const shortened = ({ output, truncated }: Executed) =>
  truncated
    ? element(
        "p",
        { class: "note" },
        "The recorded output is shortened",
        ...(output === undefined ? ["."] : ["; the whole is kept as ", element("code", {}, output), "."])
      )
    : undefined

const executed = (entry: Entry, data: Executed, at: number, showing: Showing): ReadonlyArray<Child> => [
  promptLine(
    entry,
    data.command,
    showing,
    endChip(data),
    element("span", { class: "took" }, durationText(data.durationMs)),
    time(at)
  ),
  output("late", "Printed late by earlier commands", data.lateOutput, showing),
  output("out", "Output", data.stdout, showing),
  output("err", "Errors", data.stderr, showing),
  shortened(data)
]

/** An event without a command, on a line. */
const mark = (what: string, details: ReadonlyArray<Child>, at: number): ReadonlyArray<Child> => [
  element(
    "div",
    { class: "line mark" },
    element("div", { class: "what" }, element("strong", {}, what), ...details),
    element("div", { class: "end" }, time(at))
  )
]

const isText = (text: string | undefined): text is string => text !== undefined && text !== ""

const bdi = (text: string) => element("bdi", {}, text)

/** The class and the content of an event. */
const content = (entry: Entry, showing: Showing): readonly [kind: string, ReadonlyArray<Child>] => {
  const { event } = entry
  switch (event.type) {
    case "session.next.shell.executed":
      return [event.data.exitCode === 0 ? "ran" : "ran failed", executed(entry, event.data, event.created, showing)]
    case "session.next.shell.blocked":
      return [
        "blocked",
        [
          promptLine(entry, event.data.command, showing, chip("warn", "blocked"), time(event.created)),
          element("p", { class: "reason" }, `Not run, ${blockText(event.data)}`)
        ]
      ]
    case "session.next.shell.opened": {
      const { cwd, title, transport } = event.data
      const details = [transport, title, cwd].filter(isText).flatMap((text) => [" ", bdi(text)])
      return ["opened", mark("Opened", details, event.created)]
    }
    case "session.next.shell.checkpointed": {
      const { checkpointID, label } = event.data
      const details = [" ", element("code", {}, checkpointID), ...(isText(label) ? [" ", bdi(label)] : [])]
      return ["checkpoint", mark("Checkpoint", details, event.created)]
    }
    case "session.next.shell.restored": {
      const { checkpointID, filesChanged } = event.data
      const details = [" ", element("code", {}, checkpointID), ` ${filesText(filesChanged)}`]
      return ["checkpoint", mark("Restored", details, event.created)]
    }
    case "session.next.shell.closed":
      return ["closed", mark("Closed", [` ${reasonText(event.data.reason)}`], event.created)]
    default:
      return event satisfies never
  }
}

/** The event as an item of the list. */
export const entryView = (entry: Entry, showing: Showing): HTMLLIElement => {
  const [kind, children] = content(entry, showing)
  return element("li", { class: `entry ${kind}` }, ...children)
}
