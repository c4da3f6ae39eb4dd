/** What was found of other hands among the files, on a line. Pure. Spec: CL-112 in specs/cli.md. */
import type { Finding } from "@daybook/files"
import { jsonLine, oneLine } from "./Plain.ts"

/** Kind, path and what is so. */
export const findingLine = ({ details, kind, path }: Finding): string =>
  `${kind.padEnd(7)}  ${oneLine(path, 400)}  ${oneLine(details, 400)}\n`

/** The same as an object, for a program. */
export const findingJson = (finding: Finding, terminal: boolean): string => `${jsonLine(finding, terminal)}\n`
