/**
 * The host's settings for instructions and skills. Without settings, only the Location's project is read. Spec:
 * specs/context.md CX-30, CX-31.
 */
import { Config, Context, Effect, Layer } from "effect"

/** Where instructions and skills are read from (CX-30). */
export interface Settings {
  /** The user's folder, with `AGENTS.md` and `skills/`; undefined for none. */
  readonly userFolder: string | undefined
  /**
   * Additional instructions: files, globs, and http(s) URLs. Relative paths resolve against the Location; `~/` is the
   * home directory.
   */
  readonly instructions: ReadonlyArray<string>
  /** Additional folders of skills. */
  readonly skills: ReadonlyArray<string>
  /** Whether the project's instructions and skills are read. */
  readonly projectConfig: boolean
}

/** The settings for instructions and skills; a host provides them with `layer`. */
export class ContextSettings extends Context.Tag("@daybook/core/ContextSettings")<ContextSettings, Settings>() {}

/** Options of a host; all are optional. */
export interface Options {
  readonly userFolder?: string | undefined
  readonly instructions?: ReadonlyArray<string> | undefined
  readonly skills?: ReadonlyArray<string> | undefined
  /** Default: true, unless the environment disables it. */
  readonly projectConfig?: boolean | undefined
}

const isSet = (name: string) =>
  Config.string(name).pipe(
    Config.map((value) => ["1", "true"].includes(value.trim().toLowerCase())),
    // An unset or unreadable variable disables nothing.
    Effect.orElseSucceed(() => false)
  )

const projectConfigDisabled = Effect.zipWith(
  isSet("DAYBOOK_DISABLE_PROJECT_CONFIG"),
  isSet("OPENCODE_DISABLE_PROJECT_CONFIG"),
  (ours, theirs) => ours || theirs
)

/**
 * Settings from the host's options; DAYBOOK_DISABLE_PROJECT_CONFIG (1 or true) disables the project's instructions and
 * skills.
 */
export const layer = (options: Options = {}): Layer.Layer<ContextSettings> =>
  Layer.effect(
    ContextSettings,
    Effect.map(projectConfigDisabled, (disabled) => ({
      userFolder: options.userFolder,
      instructions: options.instructions ?? [],
      skills: options.skills ?? [],
      projectConfig: (options.projectConfig ?? true) && !disabled
    }))
  )
