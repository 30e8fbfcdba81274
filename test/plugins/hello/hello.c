/* Says hello from C: the same lines as every other hello plugin. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT = 1000 };

static int primes_below_limit(void)
{
    bool composite[LIMIT] = {false};
    int count = 0;
    for (int n = 2; n < LIMIT; n++) {
        if (composite[n])
            continue;
        count++;
        for (int multiple = n * n; multiple < LIMIT; multiple += n)
            composite[multiple] = true;
    }
    return count;
}

static int fail(const char *what)
{
    perror(what);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    char greeting[256], line[256] = "", directory[4096];
    snprintf(greeting, sizeof greeting, "hello from C (standard %ld, compiler %s)", __STDC_VERSION__, __VERSION__);
    puts(greeting);
    for (int i = 1; i < argc; i++)
        printf("argument: %s\n", argv[i]);
    if (fgets(line, sizeof line, stdin) != NULL)
        line[strcspn(line, "\n")] = '\0';
    printf("standard input: %s\n", line[0] ? line : "(empty)");
    if (getcwd(directory, sizeof directory) == NULL)
        return fail("getcwd");
    printf("directory: %s\n", directory);
    printf("primes below %d: %d\n", LIMIT, primes_below_limit());
    if (mkdir("out", 0755) != 0 && errno != EEXIST)
        return fail("out");
    FILE *output = fopen("out/hello.txt", "w");
    if (output == NULL || fprintf(output, "%s\n", greeting) < 0 || fclose(output) != 0)
        return fail("out/hello.txt");
    puts("wrote: out/hello.txt");
    return EXIT_SUCCESS;
}
