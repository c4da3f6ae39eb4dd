/**
 * A question for a permission, as a person decides by it: who asks, where, and the whole of what would be done, in a frame
 * that no other text can draw. Every unusual character is a sign, every line has its number, and what does not fit is
 * counted. Pure. Spec: CL-155..CL-158 in specs/cli.md.
 */
import type { PermissionFileChange, PermissionRequest } from "@daybook/core"
import { plain, type Style } from "./Style.ts"
import { exact } from "./Visible.ts"
import { cut, width } from "./Width.ts"

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** One line of a text: what stands before its first row, and the line as it is shown. */
interface Line {
  readonly gutter: string
  readonly text: string
  readonly paint?: (row: string) => string
}

/** Escaped in all other texts (CL-152). */
const shade = "▓"

/** Begins a row that goes on with the line above, which so cannot pass for a line of its own. */
const goesOn = "▒"

let segmenter: Intl.Segmenter | undefined

/** The rows of a line, each as full as whole characters allow. */
const rowsOf = (text: string, cells: number): ReadonlyArray<string> => {
  const rows: Array<string> = []
  if (/^[\u0020-\u007e]*$/.test(text)) {
    for (let at = 0; at < text.length; at += cells) rows.push(text.slice(at, at + cells))
  } else {
    let [row, left] = ["", cells]
    for (const { segment } of (segmenter ??= new Intl.Segmenter()).segment(text)) {
      const wide = width(segment)
      if (wide > left && row !== "") {
        rows.push(row)
        row = ""
        left = cells
      }
      row += segment
      left -= wide
    }
    rows.push(row)
  }
  return rows.length === 0 ? [""] : rows
}

const framed = ({ gutter, paint = (row) => row, text }: Line, columns: number): ReadonlyArray<string> => {
  const indent = " ".repeat(width(gutter))
  const cells = Math.max(8, columns - 3 - indent.length)
  return rowsOf(text, cells).map((row, at) => {
    const head = at === 0 ? `${shade} ${gutter}` : `${goesOn} ${indent}`
    return row === "" ? head.trimEnd() : `${head}${paint(row)}`
  })
}

const edge = (title: string, { columns }: Size, { marked }: Style): string => {
  const cells = Math.max(12, columns - 1)
  const head = title === "" ? "" : `${shade}${shade} ${cut(title, cells - 6)} `
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

/** What would be done. */
const subjectLines = ({ resources, subject, title, tool }: PermissionRequest, style: Style): ReadonlyArray<Line> => {
  switch (subject.type) {
    case "command": {
      // Parts of the command that the rules leave open are named where they are not the whole of it.
      const open = resources.length === 1 && resources[0] === subject.command ? [] : resources
      return [
        said(`runs a command in ${exact(subject.folder)}:`),
        ...numbered(subject.command),
        ...(open.length === 0 ? [] : [said("of which no rule allows:"), ...open.flatMap(numbered)]),
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

/** What the answers that hold for longer would allow. */
const alwaysLines = ({ always, permission, subject }: PermissionRequest): ReadonlyArray<Line> =>
  always.map((pattern) => {
    const all =
      pattern === "*" ? ` (every call${subject.type === "mcp" ? " of this tool, whatever its input" : ""})` : ""
    return fact("always", `${exact(permission)}: ${exact(pattern)}${all}`)
  })

/** Who asks, and where. A title is the model's or a person's, and may be of any length. */
const factLines = ({ agent, location, sessionID, sessionTitle, tool }: PermissionRequest): ReadonlyArray<Line> => {
  const title = sessionTitle === undefined ? "" : `${cut(quoted(sessionTitle), 200)} `
  return [
    fact("agent", exact(agent)),
    fact("session", `${title}(${exact(sessionID)})`),
    fact("folder", exact(location.directory)),
    fact("tool", exact(tool))
  ]
}

/** Rows of a question at its first sight: as many as leave room for what came before it. */
const firstSight = ({ rows }: Size): number => Math.min(40, Math.max(10, rows - 10))

/** Of what is cut, this many of the last rows stay: the end of a command matters as much as its beginning. */
const lastRows = 4

/** The rows of a question: all of them, or with a row that counts what is left out. */
const bodyRows = (request: PermissionRequest, { columns }: Size, style: Style): ReadonlyArray<string> =>
  [
    ...subjectLines(request, style),
    ...request.notes.map((note) => fact("note", exact(note))),
    ...alwaysLines(request)
  ].flatMap((line) => framed(line, columns))

const bounded = (rows: ReadonlyArray<string>, size: Size): ReadonlyArray<string> => {
  const most = firstSight(size)
  if (rows.length <= most) return rows
  const hidden = rows.slice(most - lastRows - 1, -lastRows)
  const characters = hidden.reduce((sum, row) => sum + Math.max(0, row.length - 2), 0)
  const note = said(`… ${hidden.length} rows with ${characters} characters are hidden: v shows all`)
  return [...rows.slice(0, most - lastRows - 1), ...framed(note, size.columns), ...rows.slice(-lastRows)]
}

const lines = (rows: ReadonlyArray<string>): string => rows.map((row) => `${row}\n`).join("")

/** The question at first sight. */
export const questionText = (request: PermissionRequest, size: Size, style: Style = plain): string =>
  lines([
    "",
    edge(`permission: ${exact(request.permission)}`, size, style),
    ...factLines(request).flatMap((line) => framed(line, size.columns)),
    ...bounded(bodyRows(request, size, style), size),
    edge("", size, style)
  ])

/** All of it, in pages of the terminal's size. */
export const questionPages = (request: PermissionRequest, size: Size, style: Style = plain): ReadonlyArray<string> => {
  const rows = bodyRows(request, size, style)
  const height = Math.max(8, size.rows - 3)
  return Array.from({ length: Math.ceil(rows.length / height) }, (_, at) =>
    lines(rows.slice(at * height, (at + 1) * height))
  )
}

/** What "always" would save, before it is saved. */
export const alwaysText = ({ always, permission }: PermissionRequest, size: Size): string =>
  lines(
    [
      said(`allows in this folder from now on, for the permission ${quoted(permission)}:`),
      ...always.flatMap(numbered)
    ].flatMap((line) => framed(line, size.columns))
  )

/** How to answer, in a row. */
export const answerPrompt = ({ always }: PermissionRequest): string => {
  const lasting = always.length === 0 ? "" : ", [s]ession, [a]lways"
  return `[y]es once${lasting}, [v]iew, [n]o and stop, or words to correct: `
}
