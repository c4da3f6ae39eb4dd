/** What can go wrong with a live shell. No message contains a secret. Spec: SL-1 in specs/shell.md. */
import { ShellCloseReason } from "@daybook/log/events/LiveShellEvents"
import { Schema } from "effect"

/** An option, a budget or a policy is invalid. Nothing was started. */
export class InvalidOption extends Schema.TaggedError<InvalidOption>("@daybook/shell/InvalidOption")("InvalidOption", {
  option: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.option}: ${this.details}`
  }
}

/** No shell has this id, or it was destroyed. */
export class ShellNotFound extends Schema.TaggedError<ShellNotFound>("@daybook/shell/ShellNotFound")("ShellNotFound", {
  shellID: Schema.String
}) {
  override get message() {
    return `there is no shell ${this.shellID}`
  }
}

/** All slots are in use. */
export class ShellLimit extends Schema.TaggedError<ShellLimit>("@daybook/shell/ShellLimit")("ShellLimit", {
  limit: Schema.Int
}) {
  override get message() {
    return `${this.limit} shells are open, which is the limit: destroy one first`
  }
}

/** The shell could not be started, or its transport failed. */
export class TransportFailed extends Schema.TaggedError<TransportFailed>("@daybook/shell/TransportFailed")(
  "TransportFailed",
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
  }
) {
  override get message() {
    return `${this.transport}: ${this.details}`
  }
}

export const CloseReason = ShellCloseReason
export type CloseReason = ShellCloseReason

/** The shell has ended; it takes no more commands. */
export class ShellClosed extends Schema.TaggedError<ShellClosed>("@daybook/shell/ShellClosed")("ShellClosed", {
  shellID: Schema.String,
  reason: CloseReason
}) {
  override get message() {
    return `shell ${this.shellID} is closed (${this.reason}): create another one`
  }
}

/** A policy forbids the command. Nothing ran. */
export class CommandBlocked extends Schema.TaggedError<CommandBlocked>("@daybook/shell/CommandBlocked")(
  "CommandBlocked",
  {
    /** The list that decided. */
    policy: Schema.Literal("operator", "shell"),
    reason: Schema.String
  }
) {
  override get message() {
    return `the ${this.policy === "operator" ? "operator's" : "shell's"} policy blocks the command: ${this.reason}`
  }
}
