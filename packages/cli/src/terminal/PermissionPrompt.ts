/** Asks the person at the terminal for permission to run a tool call. Spec: CL-35..CL-37, CL-155..CL-158. */
import { Effect, Layer } from "effect"
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"
import type { FileChange as PermissionFileChange } from "@daybook/core/permission/PermissionSubject"
import { plain, type Style, styleOf } from "../render/Style.ts"
import { cut, exact, rowsOf, width } from "../render/Plain.ts"
import * as Question from "./Question.ts"

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** One line of a text: the gutter before its first row, and the sanitized line. */
type Line = { readonly gutter: string; readonly text: string; readonly paint?: (row: string) => string }

/** Begins a line. Escaped in all other texts (CL-152). */
const shade = "▓"

/** Begins a row that continues the line above, so that the row cannot imitate a line. */
const goesOn = "▒"

/** A line needs so many cells beside its gutter; with fewer, the gutter has a row of its own. */
const leastCells = 8

const bordered = ({ gutter, paint = (row) => row, text }: Line, columns: number): ReadonlyArray<string> => {
  const beside = columns - 3 - width(gutter)
  const narrow = beside < leastCells && gutter !== ""
  const indent = " ".repeat(narrow ? 0 : width(gutter))
  const rows = rowsOf(text, Math.max(2, columns - 3 - indent.length)).map((row, at) => {
    const head = at === 0 && !narrow ? `${shade} ${gutter}` : `${goesOn} ${indent}`
    return row === "" ? head.trimEnd() : `${head}${paint(row)}`
  })
  return narrow ? [`${shade} ${gutter.trim()}`, ...rows] : rows
}

const edge = (title: string, { columns }: Size, { marked }: Style): string => {
  const cells = Math.max(2, columns - 1)
  const head = title === "" || cells < 12 ? "" : `${shade}${shade} ${cut(title, cells - 6)} `
  return marked(head + shade.repeat(Math.max(0, cells - width(head))))
}

const numbered = (text: string): ReadonlyArray<Line> => {
  const lines = text.split("\n")
  const digits = String(lines.length).length
  return lines.map((line, at) => ({ gutter: `  ${String(at + 1).padStart(digits)}  `, text: exact(line) }))
}

const said = (text: string): Line => ({ gutter: "", text })

const fact = (name: string, text: string): Line => ({ gutter: name.padEnd(9), text })

const quoted = (text: string): string => `"${exact(text)}"`

const json = (input: unknown): ReadonlyArray<Line> => numbered(JSON.stringify(input, null, 2) ?? "")

const paths = ({ movedTo, path }: PermissionFileChange): string =>
  movedTo === undefined ? exact(path) : `${exact(path)} to ${exact(movedTo)}`

const verbs = { create: "creates", replace: "replaces", edit: "edits", delete: "deletes", move: "moves" } as const

const changeLines = (file: PermissionFileChange, { bad, good }: Style): ReadonlyArray<Line> => [
  said(`${verbs[file.change]} ${paths(file)}`),
  ...(file.diff === "" ? [] : file.diff.split("\n")).map((line): Line => {
    const sign = line.slice(0, 1)
    if (sign === "@") return { gutter: "  ", text: exact(line) }
    const paint = sign === "+" ? good : sign === "-" ? bad : undefined
    return { gutter: `  ${sign} `, text: exact(line.slice(1)), ...(paint === undefined ? {} : { paint }) }
  })
]

const subjectLines = ({ resources, subject, title, tool }: PermissionRequest, style: Style): ReadonlyArray<Line> => {
  switch (subject.type) {
    case "command": {
      // Parts of the command that no rule allows are listed unless they are the whole command.
      const open = resources.length === 1 && resources[0] === subject.command ? [] : resources
      return [
        said(`runs a command in ${exact(subject.folder)}:`),
        ...numbered(subject.command),
        ...(open.length === 0 ? [] : [said("no rule allows these parts:"), ...open.flatMap(numbered)]),
        ...subject.warnings.map((warning) => said(exact(warning)))
      ]
    }
    case "change":
      return subject.files.flatMap((file) => changeLines(file, style))
    case "read": {
      const pattern = subject.pattern === undefined ? [] : [said("for:"), ...numbered(subject.pattern)]
      return [said(`reads ${exact(subject.path)}`), ...pattern]
    }
    case "external_directory": {
      const command = subject.command === undefined ? [] : [said("to run there:"), ...numbered(subject.command)]
      return [said(`works outside its folder, in ${exact(subject.folder)}`), ...command]
    }
    case "mcp":
      return [
        said(`calls tool ${quoted(subject.tool)} of MCP server ${quoted(subject.server)} with:`),
        ...json(subject.input)
      ]
    case "task":
      return [
        said(`gives agent ${quoted(subject.agent)} the task ${quoted(subject.description)}:`),
        ...numbered(subject.prompt)
      ]
    case "skill":
      return [said(`loads the instructions of skill ${quoted(subject.name)}`)]
    case "call":
      return [
        said(`calls tool ${quoted(tool)}:`),
        ...numbered(title),
        said("on:"),
        ...resources.flatMap(numbered),
        ...(subject.input === undefined ? [] : [said("with:"), ...json(subject.input)])
      ]
  }
}

const alwaysLines = ({ always, permission, subject }: PermissionRequest): ReadonlyArray<Line> =>
  always.map((pattern) => {
    const all =
      pattern === "*" ? ` (every call${subject.type === "mcp" ? " of this tool, whatever its input" : ""})` : ""
    return fact("always", `${exact(permission)}: ${exact(pattern)}${all}`)
  })

/** The lines that say who asks, and where. A title comes from a model or a person and may have any length. */
const factLines = ({ agent, location, sessionID, sessionTitle, tool }: PermissionRequest): ReadonlyArray<Line> => {
  const title = sessionTitle === undefined ? "" : `${cut(quoted(sessionTitle), 200)} `
  return [
    fact("agent", exact(agent)),
    fact("session", `${title}(${exact(sessionID)})`),
    fact("folder", exact(location.directory)),
    fact("tool", exact(tool))
  ]
}

/** Rows of a question when first shown: they leave some earlier output visible. */
const firstSight = ({ rows }: Size): number => Math.min(40, Math.max(10, rows - 10))

/** Last rows that a shortened question keeps: the end of a command matters as much as its beginning. */
const lastRows = 4

/** The rows of a question: all of them, or some with a row that counts the hidden ones. */
const bodyRows = (request: PermissionRequest, { columns }: Size, style: Style): ReadonlyArray<string> =>
  [
    ...subjectLines(request, style),
    ...request.notes.map((note) => fact("note", exact(note))),
    ...alwaysLines(request)
  ].flatMap((line) => bordered(line, columns))

const bounded = (rows: ReadonlyArray<string>, size: Size): ReadonlyArray<string> => {
  const most = firstSight(size)
  if (rows.length <= most) return rows
  const hidden = rows.slice(most - lastRows - 1, -lastRows)
  const characters = hidden.reduce((sum, row) => sum + Math.max(0, row.length - 2), 0)
  const note = said(`… ${hidden.length} rows with ${characters} characters are hidden: v shows all`)
  return [...rows.slice(0, most - lastRows - 1), ...bordered(note, size.columns), ...rows.slice(-lastRows)]
}

const lines = (rows: ReadonlyArray<string>): string => rows.map((row) => `${row}\n`).join("")

/** The question when first shown, shortened to fit. */
export const questionText = (request: PermissionRequest, size: Size, style: Style = plain): string =>
  lines([
    "",
    edge(`permission: ${exact(request.permission)}`, size, style),
    ...factLines(request).flatMap((line) => bordered(line, size.columns)),
    ...bounded(bodyRows(request, size, style), size),
    edge("", size, style)
  ])

/** The whole question, in pages of the terminal's size. */
export const questionPages = (request: PermissionRequest, size: Size, style: Style = plain): ReadonlyArray<string> => {
  const rows = bodyRows(request, size, style)
  const height = Math.max(8, size.rows - 3)
  return Array.from({ length: Math.ceil(rows.length / height) }, (_, at) =>
    lines(rows.slice(at * height, (at + 1) * height))
  )
}

/** The patterns that "always" would save. */
export const alwaysText = ({ always, permission }: PermissionRequest, size: Size): string =>
  lines(
    [
      said(`allows in this folder from now on, for the permission ${quoted(permission)}:`),
      ...always.flatMap(numbered)
    ].flatMap((line) => bordered(line, size.columns))
  )

export const answerPrompt = ({ always }: PermissionRequest): string => {
  const lasting = always.length === 0 ? "" : ", [s]ession, [a]lways"
  return `[y]es once${lasting}, [v]iew, [n]o and stop, or words to correct: `
}

/** A typed reply: an answer, or a request to show more first. */
type Typed = Answer | "view" | "always"

/** Parses a typed line. An empty line declines; the end of the input means that no one is there. Pure. */
export const typed = (line: string | undefined, request: PermissionRequest): Typed => {
  if (line === undefined) return Answer.Unavailable()
  const words = line.trim()
  // An answer that is not offered is plain text: a misunderstanding must not allow anything.
  const lasting = request.always.length > 0
  switch (words.toLowerCase()) {
    case "y":
    case "yes":
      return Answer.Once()
    case "s":
    case "session":
      return lasting ? Answer.Session() : Answer.Correct({ message: words })
    case "a":
    case "always":
      return lasting ? "always" : Answer.Correct({ message: words })
    case "v":
    case "view":
    case "?":
      return "view"
    case "":
    case "n":
    case "no":
      return Answer.Decline()
    default:
      return Answer.Correct({ message: words })
  }
}

type Ask = (question: Question.Question) => Effect.Effect<string | undefined>

const view = Effect.fnUntraced(function* (ask: Ask, pages: ReadonlyArray<string>) {
  for (const [at, shown] of pages.entries()) {
    const more = at < pages.length - 1 ? "Enter shows more, q goes back" : "Enter goes back"
    const line = yield* ask({ shown, prompt: `${at + 1} of ${pages.length}: ${more}: ` })
    if (line === undefined || line.trim() !== "") return
  }
})

/** Shows the pattern, which is saved as shown or as retyped; `undefined` returns to the question. */
const always = (ask: Ask, request: PermissionRequest, size: () => Size) =>
  Effect.map(
    ask({
      shown: alwaysText(request, size()),
      prompt: "Enter saves this, b goes back; or type another pattern (* is any text): "
    }),
    (line) => {
      const pattern = line?.trim()
      if (pattern === undefined) return Answer.Unavailable()
      if (pattern === "") return Answer.Always()
      return pattern.toLowerCase() === "b" ? undefined : Answer.AlwaysFor({ resources: [pattern] })
    }
  )

export const decide = (ask: Ask, request: PermissionRequest, size: () => Size, style: Style): Effect.Effect<Answer> =>
  Effect.gen(function* () {
    for (;;) {
      const said = typed(
        yield* ask({ shown: questionText(request, size(), style), prompt: answerPrompt(request) }),
        request
      )
      if (said === "view") yield* view(ask, questionPages(request, size(), style))
      else if (said === "always") {
        const answer = yield* always(ask, request, size)
        if (answer !== undefined) return answer
      } else return said
    }
  })

const terminalSize = (): Size => ({ columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 })

/** Asks at the terminal; without one, the answer is that no one is there. */
export const layer: Layer.Layer<PermissionAsker> = Layer.succeed(
  PermissionAsker,
  PermissionAsker.of({
    ask: (request) =>
      Question.together(
        Effect.suspend(() => decide(Question.line, request, terminalSize, styleOf(process.env, Question.canAsk())))
      )
  })
)
