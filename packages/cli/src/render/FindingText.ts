/** Renders a difference between files and log as a line. Pure. Spec: CL-112 in specs/cli.md. */
import type { Finding } from "@daybook/files/layout/Errors"
import { jsonLine, oneLine } from "./Plain.ts"

/** Kind, path and details. */
export const findingLine = ({ details, kind, path }: Finding): string =>
  `${kind.padEnd(7)}  ${oneLine(path, 400)}  ${oneLine(details, 400)}\n`

/** The difference as a JSON object. */
export const findingJson = (finding: Finding, terminal: boolean): string => `${jsonLine(finding, terminal)}\n`
