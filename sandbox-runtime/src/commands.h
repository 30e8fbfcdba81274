/* The subcommands of the launcher; each returns the exit code. */
#ifndef SANDBUS_COMMANDS_H
#define SANDBUS_COMMANDS_H

enum { EXIT_SETUP_FAILED = 125 };

int command_run(int count, char **words);
int command_serve(int count, char **words);
int command_check_host(int count, char **words);
int command_syscalls(int count, char **words);

#endif
