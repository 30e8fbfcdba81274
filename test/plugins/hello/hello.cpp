// Says hello from C++: the same lines as every other hello plugin.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

static int primes_below(int limit)
{
    std::vector<bool> composite(limit);
    int count = 0;
    for (int n = 2; n < limit; n++) {
        if (composite[n])
            continue;
        count++;
        for (int multiple = n * n; multiple < limit; multiple += n)
            composite[multiple] = true;
    }
    return count;
}

int main(int argc, char **argv)
{
    const auto greeting = "hello from C++ (standard " + std::to_string(__cplusplus) + ", compiler " __VERSION__ ")";
    std::cout << greeting << '\n';
    for (int i = 1; i < argc; i++)
        std::cout << "argument: " << argv[i] << '\n';
    std::string line;
    std::getline(std::cin, line);
    std::cout << "standard input: " << (line.empty() ? "(empty)" : line) << '\n';
    std::cout << "directory: " << std::filesystem::current_path().string() << '\n';
    std::cout << "primes below 1000: " << primes_below(1000) << '\n';
    std::filesystem::create_directories("out");
    std::ofstream output;
    output.exceptions(std::ios::failbit | std::ios::badbit);
    output.open("out/hello.txt");
    output << greeting << std::endl;
    std::cout << "wrote: out/hello.txt\n";
}
