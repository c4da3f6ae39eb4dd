/**
 * Where instructions and skills come from, as the host configured it. Without settings nothing outside the Location's
 * project is read. Spec: specs/context.md CX-30, CX-31.
 */
import { Config, Context, Effect, Layer } from "effect"

export interface Settings {
  /** The user's own folder, with `AGENTS.md` and `skills/`; none when undefined. */
  readonly userFolder: string | undefined
  /** Further instructions: files, globs, and http(s) URLs. What is relative is so to the Location; `~/` is the home. */
  readonly instructions: ReadonlyArray<string>
  /** Further folders of skills. */
  readonly skills: ReadonlyArray<string>
  /** Whether the project's own instructions and skills are read. */
  readonly projectConfig: boolean
}

export class ContextSettings extends Context.Tag("@daybook/core/ContextSettings")<ContextSettings, Settings>() {}

/** What a host sets; everything may be left out. */
export interface Options {
  readonly userFolder?: string | undefined
  readonly instructions?: ReadonlyArray<string> | undefined
  readonly skills?: ReadonlyArray<string> | undefined
  /** By default true, unless the environment says otherwise. */
  readonly projectConfig?: boolean | undefined
}

const isSet = (name: string) =>
  Config.string(name).pipe(
    Config.map((value) => ["1", "true"].includes(value.trim().toLowerCase())),
    // A variable that is not there, or that the provider cannot give, disables nothing.
    Effect.orElseSucceed(() => false)
  )

const projectConfigDisabled = Effect.zipWith(
  isSet("DAYBOOK_DISABLE_PROJECT_CONFIG"),
  isSet("OPENCODE_DISABLE_PROJECT_CONFIG"),
  (ours, theirs) => ours || theirs
)

/** Settings from the host's options; DAYBOOK_DISABLE_PROJECT_CONFIG (1 or true) turns the project's own off. */
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
