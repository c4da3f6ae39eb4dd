/** Names what a person typed in the errors of options of live shells. Pure. Spec: SL-586 in specs/shell.md. */
import type { InvalidOption } from "@daybook/shell/domain/ShellError"
import { UsageError } from "../support/Errors.ts"

/** Flags by the path of an option, or by the name that the path begins with. */
export type FlagNames = Readonly<Record<string, string>>

/** The error of an option that a flag sets. */
export const asFlag =
  (names: FlagNames) =>
  ({ details, option }: InvalidOption): UsageError => {
    const path = option.replace(/^budget\./, "")
    const flag = names[path] ?? names[/^\w+/.exec(path)?.[0] ?? ""]
    return new UsageError({ message: `${flag ?? option}: ${details}` })
  }
