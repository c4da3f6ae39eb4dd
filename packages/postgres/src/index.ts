/**
 * The public API of `@daybook/postgres`, one namespace per module. A module that is not listed is internal.
 *
 * @module @daybook/postgres
 */
export * as Postgres from "./Postgres.ts"
