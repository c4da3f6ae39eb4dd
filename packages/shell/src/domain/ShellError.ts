/** What can go wrong with a live shell. No message contains a secret. Spec: SL-1 in specs/shell.md. */
import { ShellCloseReason } from "@daybook/log/events/LiveShellEvents"
import { Schema } from "effect"
import { ErrorClass } from "@daybook/log/support/ErrorClass"

/** An option, a budget or a policy is invalid. Nothing was started. */
export class InvalidOption extends ErrorClass<InvalidOption>("shell")("InvalidOption")(
  { option: Schema.String, details: Schema.String },
  ({ details, option }) => `${option}: ${details}`
) {}

/** No shell has this id, or it was destroyed. */
export class ShellNotFound extends ErrorClass<ShellNotFound>("shell")("ShellNotFound")(
  { shellID: Schema.String },
  ({ shellID }) => `there is no shell ${shellID}`
) {}

/** All slots are in use. */
export class ShellLimit extends ErrorClass<ShellLimit>("shell")("ShellLimit")(
  { limit: Schema.Int },
  ({ limit }) => `${limit} shells are open, which is the limit: destroy one first`
) {}

/** The shell could not be started, or its transport failed. */
export class TransportFailed extends ErrorClass<TransportFailed>("shell")("TransportFailed")(
  {
    transport: Schema.Literal("local", "ssh", "docker"),
    reason: Schema.Literal(
      "unreachable",
      "host key",
      "credentials",
      "no shell",
      "lost",
      "sandbox.denied",
      "sandbox.unavailable"
    ),
    details: Schema.String
  },
  ({ details, transport }) => `${transport}: ${details}`
) {}

export const CloseReason = ShellCloseReason
export type CloseReason = ShellCloseReason

/** The shell has ended; it takes no more commands. */
export class ShellClosed extends ErrorClass<ShellClosed>("shell")("ShellClosed")(
  { shellID: Schema.String, reason: CloseReason },
  ({ reason, shellID }) => `shell ${shellID} is closed (${reason}): create another one`
) {}

/** A policy forbids the command. Nothing ran. */
export class CommandBlocked extends ErrorClass<CommandBlocked>("shell")("CommandBlocked")(
  {
    /** The list that decided. */
    policy: Schema.Literal("operator", "shell"),
    reason: Schema.String
  },
  ({ policy, reason }) => `the ${policy === "operator" ? "operator's" : "shell's"} policy blocks the command: ${reason}`
) {}
